export { type FaultProxy, type ProxyFault, startFaultProxy } from './fault-proxy.ts';
