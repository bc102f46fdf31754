export { type FaultyWire, startFaultyWire, type WireFault } from './faulty-wire.ts';
