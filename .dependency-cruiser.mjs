// Import rules. Run by `npm run verify`, which also fails when a module was not read or a path was not resolved:
// a rule without modules would pass silently.

const TEST =
  '(\\.(test|bench)\\.ts$|^test/|^(services|libs|examples|clients)/[^/]+/test/|^platform/test/)';
const GENERATED = '^libs/contracts/gen/';
/** @param {string} names a regular expression of folders and files in the src/ of a service */
const src = (names) => `^services/[^/]+/src/(${names})`;
/** @param {string} names a regular expression of npm package names */
const npm = (names) => `(^|/)node_modules/(${names})/`;

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [
    {
      name: 'resolvable',
      comment:
        'Every import resolves to a file or an installed package; other rules cannot check unresolved imports.',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: 'no-cycles',
      comment: 'Import cycles are not allowed.',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'domain-is-pure',
      comment:
        'domain/ imports its own domain/, @writ/kernel, @writ/policy, types of @writ/contracts and the pure part of the standard library.',
      severity: 'error',
      from: { path: '^services/([^/]+)/src/domain/', pathNot: TEST },
      to: {
        pathNot: [
          '^services/$1/src/domain/',
          '^libs/(kernel|policy)/',
          GENERATED,
          '^(node:)?(assert|buffer|crypto|string_decoder|url|util)(/|$)',
        ],
      },
    },
    {
      name: 'wiring-is-on-top',
      comment: 'service.ts is imported only by main.ts and index.ts, and nothing imports these.',
      severity: 'error',
      from: { path: src(''), pathNot: [TEST, src('(main|index)\\.ts$')] },
      to: { path: src('(main|index|service)\\.ts$') },
    },
    {
      name: 'rpc-only-from-service',
      comment: 'rpc/ is imported only by service.ts, in tests, too.',
      severity: 'error',
      from: { pathNot: src('rpc/|service\\.ts$') },
      to: { path: src('rpc/') },
    },
    {
      name: 'rpc-leaves-work-to-app',
      comment: 'rpc/ calls other services, models and tools only through app/.',
      severity: 'error',
      from: { path: src('rpc/'), pathNot: TEST },
      to: {
        path: src('(peers|providers|sources|runtime|agents)/'),
        dependencyTypesNot: ['type-only'],
      },
    },
    {
      name: 'rpc-reads-nothing-itself',
      comment: 'rpc/ reads and writes no rows; app/ does.',
      severity: 'error',
      from: { path: src('rpc/'), pathNot: TEST },
      to: { path: src('store/') },
    },
    {
      name: 'rpc-leaves-decisions-to-app',
      comment: 'rpc/ uses only types of domain/.',
      severity: 'error',
      from: { path: src('rpc/'), pathNot: TEST },
      to: { path: src('domain/'), dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'app-only-from-above',
      comment:
        "app/ is imported by rpc/, service.ts, the index of the package and the worker's runtime/; context.ts and events.ts may use its types.",
      severity: 'error',
      from: {
        path: src(''),
        pathNot: [TEST, src('(app|rpc|runtime)/|(service|context|events|index)\\.ts$')],
      },
      to: { path: src('app/') },
    },
    {
      name: 'app-is-below-the-runtime',
      comment: "app/ imports neither the worker's runtime/ nor its agents/.",
      severity: 'error',
      from: { path: src('app/'), pathNot: TEST },
      to: { path: src('(runtime|agents)/') },
    },
    {
      name: 'app-types-in-context-and-events',
      comment: 'context.ts and events.ts use only types of app/.',
      severity: 'error',
      from: { path: src('(context|events)\\.ts$') },
      to: { path: src('app/'), dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'store-is-below',
      comment: 'Within its service, store/ imports domain/ only.',
      severity: 'error',
      from: { path: src('store/'), pathNot: TEST },
      to: { path: src(''), pathNot: src('(store|domain)/') },
    },
    {
      name: 'wire-is-below',
      comment: 'Within its service, wire/ imports domain/ and store/ only.',
      severity: 'error',
      from: { path: src('wire/'), pathNot: TEST },
      to: { path: src(''), pathNot: src('(wire|store|domain)/') },
    },
    {
      name: 'peers-are-below',
      comment:
        'Within its service, peers/ imports domain/, store/ and wire/, and types of config.ts.',
      severity: 'error',
      from: { path: src('peers/'), pathNot: TEST },
      to: { path: src(''), pathNot: src('(peers|wire|store|domain)/|config\\.ts$') },
    },
    {
      name: 'providers-and-sources-are-below',
      comment:
        "Within their service, the meter's providers/ and the gateway's sources/ import domain/ only.",
      severity: 'error',
      from: { path: src('(providers|sources)/'), pathNot: TEST },
      to: { path: src(''), pathNot: src('(providers|sources|domain)/') },
    },
    {
      name: 'agents-use-the-runtime',
      comment: "The worker's agents/ import domain/ and types of runtime/ only.",
      severity: 'error',
      from: { path: src('agents/'), pathNot: TEST },
      to: { path: src(''), pathNot: src('(agents|domain|runtime)/') },
    },
    {
      name: 'agents-use-types-of-the-runtime',
      comment: "The worker's agents/ import only types of runtime/.",
      severity: 'error',
      from: { path: src('agents/'), pathNot: TEST },
      to: { path: src('runtime/'), dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'runtime-is-a-use-case',
      comment: "The worker's runtime/ imports what app/ imports, and app/.",
      severity: 'error',
      from: { path: src('runtime/'), pathNot: TEST },
      to: {
        path: src(''),
        pathNot: src('(runtime|app|domain|store|peers|wire)/|(events|context)\\.ts$'),
      },
    },
    {
      name: 'contracts-stop-at-the-edges',
      comment:
        'In services, generated code is used in rpc/, wire/, peers/, events.ts and the wiring (main, index, service); the other folders may use its types.',
      severity: 'error',
      from: {
        path: '^services/[^/]+/src/',
        pathNot: [
          TEST,
          '^services/[^/]+/src/(rpc|wire|peers)/',
          '^services/[^/]+/src/(events|main|index|service)\\.ts$',
          // Tools in other languages are called over the ToolProvider contract, so this folder is a boundary, too.
          '^services/tool-gateway/src/sources/',
        ],
      },
      to: { path: GENERATED, dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'store-knows-no-contracts',
      comment: 'Rows outlive a version of the contract, so store/ does not even use its types.',
      severity: 'error',
      from: { path: '^services/[^/]+/src/store/', pathNot: TEST },
      to: { path: GENERATED },
    },
    {
      name: 'libs-that-speak-contracts',
      comment:
        'Of the libs only identity, rpc, bus, client, freeze, hooks and testing know the contracts.',
      severity: 'error',
      from: {
        path: '^libs/',
        pathNot: [TEST, '^libs/(contracts|identity|rpc|bus|client|freeze|hooks|testing)/'],
      },
      to: { path: GENERATED },
    },
    {
      name: 'services-never-import-services',
      comment: 'Services communicate only over gRPC.',
      severity: 'error',
      from: { path: '^services/([^/]+)/' },
      to: { path: '^services/', pathNot: '^services/$1/' },
    },
    {
      name: 'services-import-only-libs',
      comment: 'Services do not import what runs or calls them.',
      severity: 'error',
      from: { path: '^services/' },
      to: { path: '^(platform|examples|clients|scripts|test)/' },
    },
    {
      name: 'libs-import-only-libs',
      comment:
        'Libraries never import what is built on them, except the test platform, which is built on the platform.',
      severity: 'error',
      from: { path: '^libs/', pathNot: '^libs/testing/src/(platform|distributed)/' },
      to: { path: '^(services|platform|examples|clients|scripts|test)/' },
    },
    {
      name: 'examples-import-only-libs',
      comment: 'Examples import only the libraries that users have.',
      severity: 'error',
      from: { path: '^examples/([^/]+)/' },
      to: {
        path: '^(services|platform|examples|clients|scripts|test)/',
        pathNot: '^examples/$1/',
      },
    },
    {
      name: 'by-name-between-packages',
      comment: 'Packages import each other by name, so that only exports are accessible.',
      severity: 'error',
      from: { path: '^((libs|services|examples|clients)/[^/]+|platform)/' },
      to: {
        path: '^(libs|services|examples|clients|platform)/',
        pathNot: '^$1/',
        dependencyTypes: ['local'],
      },
    },
    {
      name: 'tests-are-leaves',
      comment: 'Only tests import tests.',
      severity: 'error',
      from: { pathNot: TEST },
      to: { path: TEST },
    },
    {
      name: 'no-doubles-in-production',
      comment:
        'Simulators and fakes are for tests, and for the embedded mode that platform/ composes.',
      severity: 'error',
      from: { path: '^(services|libs)/', pathNot: [TEST, '^libs/(testing|simulator)/'] },
      to: { path: '^libs/(testing|simulator)/' },
    },
    {
      name: 'sdk-is-thin',
      comment: 'What modules of users import depends on the kernel only, never on a service.',
      severity: 'error',
      from: { path: '^libs/sdk/' },
      to: { pathNot: '^libs/(sdk|kernel)/' },
    },
    {
      name: 'only-telemetry-sets-up-otel',
      comment: 'Only libs/telemetry uses the OpenTelemetry SDK and pino.',
      severity: 'error',
      from: { pathNot: [TEST, '^libs/telemetry/'] },
      to: { path: npm('@opentelemetry/(?!api/)[^/]+|pino') },
    },
    {
      name: 'otel-api-in-few-places',
      comment: 'rpc and bus propagate context; a service uses it only in its wiring.',
      severity: 'error',
      from: {
        pathNot: [TEST, '^libs/(telemetry|rpc|bus)/', '^services/[^/]+/src/(main|service)\\.ts$'],
      },
      to: { path: npm('@opentelemetry/api') },
    },
    {
      name: 'only-providers-call-openai',
      comment: 'Only the meter calls models (EM-6).',
      severity: 'error',
      from: { pathNot: [TEST, '^services/execution-meter/src/providers/'] },
      to: { path: npm('openai') },
    },
  ],
  options: {
    parser: 'swc',
    tsPreCompilationDeps: true,
    doNotFollow: { path: 'node_modules' },
    // Built files, and programs that run with packages of their own.
    exclude: { path: '^(clients/console/dist|test/interop/clients|test/bench/peers/programs)/' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['types', 'node', 'import', 'default'],
      extensions: ['.ts', '.js', '.mjs', '.cjs', '.json'],
      mainFields: ['types', 'module', 'main'],
    },
  },
};
