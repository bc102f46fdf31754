// Who may import whom. Run by `npm run verify`, which also fails when a module was not read or a path not resolved:
// a rule over nothing passes silently.

const TEST =
  '(\\.(test|bench)\\.ts$|^test/|^(services|libs|examples|clients)/[^/]+/test/|^platform/test/)';
const GENERATED = '^libs/contracts/gen/';
/** @param {string} names a regular expression of npm package names */
const npm = (names) => `(^|/)node_modules/(${names})/`;

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [
    {
      name: 'resolvable',
      comment:
        'Every import leads to a file or an installed package, else no other rule can judge it.',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: 'no-cycles',
      comment: 'Modules that need each other are one module.',
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
      name: 'contracts-stop-at-the-edges',
      comment:
        'In services, generated code is used in rpc/, wire/, peers/, events.ts and the wiring (main, index, service); the other rooms may use its types.',
      severity: 'error',
      from: {
        path: '^services/[^/]+/src/',
        pathNot: [
          TEST,
          '^services/[^/]+/src/(rpc|wire|peers)/',
          '^services/[^/]+/src/(events|main|index|service)\\.ts$',
          // Tools of other languages are called over the ToolProvider contract: this room is an edge, too.
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
      comment: 'Of the libs only identity, rpc, bus, client, hooks and testing know the contracts.',
      severity: 'error',
      from: {
        path: '^libs/',
        pathNot: [TEST, '^libs/(contracts|identity|rpc|bus|client|hooks|testing)/'],
      },
      to: { path: GENERATED },
    },
    {
      name: 'services-are-strangers',
      comment: 'Services meet over gRPC only.',
      severity: 'error',
      from: { path: '^services/([^/]+)/' },
      to: { path: '^services/', pathNot: '^services/$1/' },
    },
    {
      name: 'services-stand-on-libs',
      comment: 'A service does not know who runs it.',
      severity: 'error',
      from: { path: '^services/' },
      to: { path: '^(platform|examples|clients|scripts|test)/' },
    },
    {
      name: 'libs-stand-alone',
      comment:
        'Libs never import what is built on them, but for the test platform, which is the platform.',
      severity: 'error',
      from: { path: '^libs/', pathNot: '^libs/testing/src/(platform|distributed)/' },
      to: { path: '^(services|platform|examples|clients|scripts|test)/' },
    },
    {
      name: 'examples-stand-on-libs',
      comment: 'An example shows what a user can do, who has only the libs.',
      severity: 'error',
      from: { path: '^examples/([^/]+)/' },
      to: {
        path: '^(services|platform|examples|clients|scripts|test)/',
        pathNot: '^examples/$1/',
      },
    },
    {
      name: 'by-name-between-packages',
      comment: 'Packages import each other by name, which leaves them only the exports.',
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
      comment: 'Nothing but a test imports a test.',
      severity: 'error',
      from: { pathNot: TEST },
      to: { path: TEST },
    },
    {
      name: 'no-doubles-in-production',
      comment:
        'Simulators and fakes are for tests, and for the embedded mode that platform/ composes.',
      severity: 'error',
      from: { path: '^(services|libs)/', pathNot: [TEST, '^libs/testing/'] },
      to: { path: '^libs/testing/' },
    },
    {
      name: 'only-telemetry-sets-up-otel',
      comment: 'One owner of the OpenTelemetry SDK and of pino.',
      severity: 'error',
      from: { pathNot: [TEST, '^libs/telemetry/'] },
      to: { path: npm('@opentelemetry/(?!api/)[^/]+|pino') },
    },
    {
      name: 'otel-api-in-few-places',
      comment: 'Context crosses the wire in rpc and bus; a service touches it only in its wiring.',
      severity: 'error',
      from: {
        pathNot: [TEST, '^libs/(telemetry|rpc|bus)/', '^services/[^/]+/src/(main|service)\\.ts$'],
      },
      to: { path: npm('@opentelemetry/api') },
    },
    {
      name: 'only-providers-call-openai',
      comment: 'The meter is the wire to the model (EM-6).',
      severity: 'error',
      from: { pathNot: [TEST, '^services/execution-meter/src/providers/'] },
      to: { path: npm('openai') },
    },
  ],
  options: {
    parser: 'swc',
    tsPreCompilationDeps: true,
    doNotFollow: { path: 'node_modules' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['types', 'node', 'import', 'default'],
      extensions: ['.ts', '.js', '.mjs', '.cjs', '.json'],
      mainFields: ['types', 'module', 'main'],
    },
  },
};
