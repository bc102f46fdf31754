import type { SideEffect } from './tool.ts';

/**
 * Where a call stands (TG-5). `running`: intent is recorded and the tool runs in this process.
 * `interrupted`: intent is recorded and nobody runs it; a destructive one gets here only where its
 * outcome could not be written. The others have a receipt.
 */
export type CallState =
  | 'none'
  | 'running'
  | 'interrupted'
  | 'refused'
  | 'ok'
  | 'error'
  | 'unknown'
  | 'burnt';

/**
 * How a run of a tool ended. `lost`: it did not answer in time, or its answer did not arrive, so that
 * nobody knows what it did. `interrupted`: it was called off, and stopped.
 */
export type Ending = 'ok' | 'failed' | 'lost' | 'interrupted';

/** What happens to a call. */
export type CallEvent =
  /** It is asked for under a valid writ; `admitted` says what the checks made of it. */
  | { readonly kind: 'call'; readonly admitted: boolean }
  | { readonly kind: 'end'; readonly ending: Ending }
  /** The process that ran it is gone. */
  | { readonly kind: 'crash' }
  | { readonly kind: 'void' }
  | { readonly kind: 'resolve'; readonly done: boolean };

/**
 * What to do about it. `execute`: run the tool. `record`: write the receipt of the next state.
 * `keep`: nothing new. `join`: wait for the run under way. `answer`: give what is recorded.
 * `reject`: the event makes no sense now.
 */
type Effect = 'execute' | 'record' | 'keep' | 'join' | 'answer' | 'reject';

/** The state after an event, and what to do about it. */
export interface Transition {
  readonly next: CallState;
  readonly effect: Effect;
}

/**
 * The life of one tool call. A destructive tool is executed at most once; an outcome is recorded
 * once, and only a resolution replaces it, only an unknown one (TG-1, TG-5, TG-8).
 */
export function transition(state: CallState, event: CallEvent, sideEffect: SideEffect): Transition {
  switch (state) {
    case 'none':
      return fromNone(event);
    case 'running':
      return fromRunning(event, sideEffect);
    case 'interrupted':
      return fromInterrupted(event, sideEffect);
    case 'unknown':
      if (event.kind === 'resolve') return record(event.done ? 'ok' : 'error');
      return settled(state, event);
    case 'refused':
    case 'ok':
    case 'error':
    case 'burnt':
      return settled(state, event);
  }
}

function fromNone(event: CallEvent): Transition {
  switch (event.kind) {
    case 'call':
      return event.admitted ? { next: 'running', effect: 'execute' } : record('refused');
    case 'void':
      return record('burnt');
    case 'crash':
      return { next: 'none', effect: 'keep' };
    case 'end':
    case 'resolve':
      return { next: 'none', effect: 'reject' };
  }
}

function fromRunning(event: CallEvent, sideEffect: SideEffect): Transition {
  switch (event.kind) {
    case 'call':
    case 'void':
      return { next: 'running', effect: 'join' };
    case 'end':
      return ended(event.ending, sideEffect);
    case 'crash':
      return ended('interrupted', sideEffect);
    case 'resolve':
      return { next: 'running', effect: 'reject' };
  }
}

function ended(ending: Ending, sideEffect: SideEffect): Transition {
  switch (ending) {
    case 'ok':
      return record('ok');
    case 'failed':
      return record('error');
    case 'lost':
      return record(uncertainState(sideEffect));
    case 'interrupted':
      return sideEffect === 'destructive'
        ? record('unknown')
        : { next: 'interrupted', effect: 'keep' };
  }
}

function fromInterrupted(event: CallEvent, sideEffect: SideEffect): Transition {
  switch (event.kind) {
    case 'call':
      // The checks were passed when intent was recorded; the freeze is checked again.
      if (sideEffect !== 'destructive') return { next: 'running', effect: 'execute' };
      return record('unknown');
    case 'void':
      return record(uncertainState(sideEffect));
    case 'crash':
      return { next: 'interrupted', effect: 'keep' };
    case 'end':
    case 'resolve':
      return { next: 'interrupted', effect: 'reject' };
  }
}

/** A call that was begun and will not be repeated: only what changes nothing can have done nothing. */
function uncertainState(sideEffect: SideEffect): 'error' | 'unknown' {
  return sideEffect === 'read_only' ? 'error' : 'unknown';
}

function settled(state: CallState, event: CallEvent): Transition {
  switch (event.kind) {
    case 'call':
    case 'void':
      return { next: state, effect: 'answer' };
    case 'crash':
      return { next: state, effect: 'keep' };
    case 'end':
    case 'resolve':
      return { next: state, effect: 'reject' };
  }
}

function record(next: CallState): Transition {
  return { next, effect: 'record' };
}
