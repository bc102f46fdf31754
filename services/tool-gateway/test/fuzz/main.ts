import { parseArgs } from 'node:util';
import { callPayloads } from './call-payloads.ts';
import { judgePayload } from './judge-payload.ts';
import { payloads } from './payloads.ts';

// Many more argument texts than the tests take: `npm run fuzz -- --count 1000000 --wire 20000 --seed 7`.
// The first so many go through the checks of a call, the others through CallTool of a gateway that runs.
const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '1000000' },
    wire: { type: 'string', default: '20000' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
});
const count = Number(values.count);
const seed = Number(values.seed);
const start = performance.now();
const source = payloads(seed);
let failures = 0;
for (let index = 0; index < count; index += 1) {
  const payload = source.next().value;
  const problem = judgePayload(payload);
  if (problem === undefined) continue;
  failures += 1;
  console.error(`seed ${seed}, payload ${index}: ${problem}\n${payload.text}`);
}
const seconds = ((performance.now() - start) / 1_000).toFixed(1);
console.log(`${count} payloads of seed ${seed} in ${seconds} s, ${failures} judged wrongly`);
const wireStart = performance.now();
const problems = await callPayloads(Number(values.wire), seed);
for (const problem of problems) console.error(problem);
const wireSeconds = ((performance.now() - wireStart) / 1_000).toFixed(1);
console.log(`${values.wire} calls over the wire in ${wireSeconds} s, ${problems.length} problems`);
process.exitCode = failures + problems.length === 0 ? 0 : 1;
