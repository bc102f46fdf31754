export { FakeClock, isFakeClockAvailable } from './fake-clock.ts';
export { type FaultProxy, type ProxyFault, startFaultProxy } from './fault-proxy.ts';
export { shortenFetchTimeouts } from './short-fetch-timeouts.ts';
export { isSmallDiskAvailable, openSmallDisk, type SmallDisk } from './small-disk.ts';
