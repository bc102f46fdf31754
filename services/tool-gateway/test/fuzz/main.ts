import { parseArgs } from 'node:util';
import { callPayloads } from './call-payloads.ts';
import { judgePayload } from './judge-payload.ts';
import { payloads } from './payloads.ts';

// Fuzzes argument texts: `npm run fuzz -- --count 1000000 --wire 20000 --seed 7`. `--count` texts run through the
// checks of a call, `--wire` texts are sent to CallTool of a running gateway.
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
console.log(`${count} payloads of seed ${seed} in ${seconds} s, ${failures} wrong verdicts`);
const wireStart = performance.now();
const problems = await callPayloads(Number(values.wire), seed);
for (const problem of problems) console.error(problem);
const wireSeconds = ((performance.now() - wireStart) / 1_000).toFixed(1);
console.log(`${values.wire} calls over the wire in ${wireSeconds} s, ${problems.length} problems`);
process.exitCode = failures + problems.length === 0 ? 0 : 1;
