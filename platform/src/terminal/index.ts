export { createSignalAnswers } from './answer-signals.ts';
export { awaitWaiting, followRun, type RunFollower } from './follow-run.ts';
export { type Human, type HumanAnswer, readHuman } from './human.ts';
