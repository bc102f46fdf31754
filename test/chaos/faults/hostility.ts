import { ATTACKS } from '../../attacks/attacks.ts';
import type { HostileModel } from '../../attacks/hostile-settings.ts';
import type { Kind } from './disturbance.ts';

/** Number of concurrent starts, more than the platform can complete within a few seconds. */
const STARTS = 48;

/** Attacks on the ports, which need no run. */
const PORT_ATTACKS = ATTACKS.filter(({ isAtPorts }) => isAtPorts);

/** Attacks of another tenant and of its models and tools, and overload (BD-1, BD-2, BD-5). */
export const HOSTILE_KINDS: readonly Kind[] = [
  {
    name: 'flood',
    isBackground: true,
    disturbance: ({ attacker }, choose, between) => {
      const { name, start } = choose(PORT_ATTACKS);
      let end: () => Promise<void> = async () => undefined;
      return {
        what: `flood: ${name}`,
        targets: ['flood'],
        begin: async () => {
          // The attack fails if the replica is down or closes the connection.
          end = await start(attacker.target(choose)).catch(() => end);
        },
        end: () => end(),
        forMs: between(500, 3_000),
      };
    },
  },
  {
    name: 'overload',
    isBackground: true,
    disturbance: ({ load }) => ({
      what: `overload: ${STARTS} starts`,
      targets: ['overload'],
      begin: () => load.flood(STARTS),
      end: () => undefined,
      forMs: 0,
    }),
  },
  hostileModel('hostile schema', ['pattern', 'nested']),
  hostileModel('hostile answer', ['bomb', 'endless']),
];

function hostileModel(name: string, models: readonly HostileModel[]): Kind {
  return {
    name,
    isBackground: true,
    disturbance: ({ attacker }, choose, between) => {
      const model = choose(models);
      let runId = '';
      return {
        what: `${name}: ${model}`,
        targets: [name],
        begin: async () => {
          runId = await attacker.startRun(model);
        },
        end: () => attacker.cancelRun(runId),
        forMs: between(1_000, 5_000),
      };
    },
  };
}
