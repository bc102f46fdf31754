export { createSayings } from './answer-signals.ts';
export { followRun, type RunFollower, untilWaiting } from './follow-run.ts';
export { type Human, type HumanAnswer, readHuman } from './human.ts';
export { resultJson } from './result-json.ts';
