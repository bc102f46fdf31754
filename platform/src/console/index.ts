export { followRun, type RunFollower } from './follow-run.ts';
export { type Human, type HumanAnswer, readHuman } from './human.ts';
export { resultJson } from './result-json.ts';
