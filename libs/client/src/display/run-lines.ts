import type { Approval } from '@writ/contracts/writ/approval/v1/approval_pb';
import type { Run, RunEvent } from '@writ/contracts/writ/run/v1/run_pb';
import type { AgentRef } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { formatUsd } from '@writ/kernel/portable';
import { costOf, eventLines } from './event-lines.ts';
import { printable } from './printable.ts';

const LABEL_WIDTH = 10;

/** The agent of the last printed line; shared by the printers of concurrent runs. */
export interface Voice {
  speaker: string;
}

/**
 * Creates a printer that prints a run step by step: proposal, decision and reason, execution, and the accumulated cost.
 */
export function createRunPrinter(output: (line: string) => void, voice: Voice = { speaker: '' }) {
  const print = (line: string): void => output(printable(line));
  let costNanoUsd = 0n;

  return {
    start(run: Run): void {
      voice.speaker = run.agent?.instance ?? '';
      print(`run ${run.runId}   trace ${run.traceId}`);
      print(`${run.agent?.name ?? ''}: ${run.goal}`);
      print('');
    },

    event(event: RunEvent): void {
      costNanoUsd += costOf(event);
      const lines = eventLines(event, costNanoUsd);
      say(
        event.agent,
        lines.map(({ label, text, step }) => labelled(label, text, step)),
      );
    },

    /** Prints the heading of a run of the example that started earlier and is still in progress. */
    before(run: Run): void {
      print(`run ${run.runId}   concurrent with the run below`);
      print(`${run.agent?.name ?? ''}: ${run.goal}`);
      print('');
    },

    /** Prints a signal that the example sends in place of a person or an external system. */
    signal(agent: AgentRef, name: string, payloadJson: string): void {
      say(agent, [
        labelled('receives', `${name} from the example, not from a person: ${payloadJson}`),
      ]);
    },

    /** Prints the arguments to which a rule would revise an edit. */
    proposal(argumentsJson: string): void {
      print(labelled('revised', `by policy to ${argumentsJson}; nothing was approved yet`));
    },

    /** Prints that an approval was not decided, so that the run still waits. */
    unanswered({ approvalId }: Approval, isStopping = false): void {
      const next = isStopping ? 'the next start asks again' : 'decide it with writ approvals';
      print(labelled('open', `${approvalId} has no answer; ${next}`));
    },

    /** Prints the outcome of another run of the example. */
    other(run: Run): void {
      print('');
      const { answer = '', stopReason = '', detail = '' } = run.result ?? {};
      const outcome = detail === '' ? stopReason : `${stopReason}: ${detail}`;
      print(`${run.agent?.name ?? ''}: ${answer || outcome}`);
    },

    end(run: Run): void {
      const result = run.result;
      if (result === undefined) return;
      print('');
      if (result.answer !== '') print(`answer: ${result.answer}`);
      const usage = result.usage?.usage;
      const tokens = (usage?.inputTokens ?? 0n) + (usage?.outputTokens ?? 0n);
      const where = result.phase === '' ? '' : ` (${result.phase})`;
      print(
        `${result.stopReason}${where}: ${counted(result.trace.length, 'step')}, ${tokens} tokens, ` +
          `${formatUsd(result.usage?.costNanoUsd ?? 0n)} USD`,
      );
      if (result.detail !== '') print(result.detail);
    },
  };

  /** Prints lines of one agent, below its name when the previous lines are of another agent. */
  function say(agent: AgentRef | undefined, lines: readonly string[]): void {
    if (lines.length > 0 && agent !== undefined && agent.instance !== voice.speaker) {
      voice.speaker = agent.instance;
      print(`[${agent.name}]`);
    }
    for (const line of lines) print(line);
  }
}

/** One line of a step; the first line has the number of the step. */
function labelled(label: string, text: string, step = 0): string {
  const first = `${(step === 0 ? '' : String(step)).padStart(2)}  ${label.padEnd(LABEL_WIDTH)}`;
  // Indents continuation lines to the column of the first line.
  return first + text.replaceAll(/\s*\n\s*/g, `\n${' '.repeat(first.length)}`);
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
