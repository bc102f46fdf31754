import { Stack, Text, Timeline } from '@mantine/core';
import { printable, wordOf } from '@writ/client/display';
import type { Evidence } from '@writ/contracts/writ/approval/v1/approval_pb';
import { Verdict } from '@writ/contracts/writ/review/v1/decision_pb';
import { ShownJson, ShownText } from '../../parts/shown-text.tsx';

/** Shows the evidence that the policy discloses about the run: goal, facts and earlier steps. */
export function ApprovalEvidence({ evidence }: { readonly evidence: Evidence }) {
  const { goal, factsJson, steps, truncated } = evidence;
  return (
    <Stack gap="sm">
      {goal !== '' && (
        <div>
          <Text size="xs" className="muted">
            Goal of the run
          </Text>
          <ShownText>{goal}</ShownText>
        </div>
      )}
      {factsJson !== '' && (
        <div>
          <Text size="xs" className="muted" mb={4}>
            Facts before the action
          </Text>
          <ShownJson json={factsJson} />
        </div>
      )}
      {steps.length > 0 && (
        <div>
          <Text size="xs" className="muted" mb={8}>
            Earlier steps
          </Text>
          <Timeline bulletSize={14} lineWidth={2}>
            {steps.map((step) => (
              <Timeline.Item
                key={step.callId}
                title={`${step.step}. ${printable(step.name)}`}
                lineVariant="solid"
              >
                <Text size="xs" className="muted">
                  {[
                    step.agent?.name,
                    wordOf(Verdict, step.decision),
                    step.outcome || step.stopReason,
                  ]
                    .filter(Boolean)
                    .join(', ')}
                  : {printable(step.reason)}
                </Text>
                <Text size="sm" component="div">
                  <ShownText>{step.content}</ShownText>
                </Text>
                {step.observation !== '' && <ShownJson json={step.observation} />}
              </Timeline.Item>
            ))}
          </Timeline>
        </div>
      )}
      {truncated && (
        <Text size="xs" className="muted">
          The evidence is incomplete: parts of it were cut or omitted.
        </Text>
      )}
    </Stack>
  );
}
