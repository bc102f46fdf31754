import { parseArgs } from 'node:util';
import { judgePayload } from './judge-payload.ts';
import { payloads } from './payloads.ts';

// Many more argument texts than the tests take: `npm run fuzz -- --count 1000000 --seed 7`.
const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '1000000' },
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
process.exitCode = failures === 0 ? 0 : 1;
