import { Button, Group, JsonInput, Radio, Stack, Text } from '@mantine/core';
import type { Approval } from '@writ/contracts/writ/approval/v1/approval_pb';
import { ResolvedOutcome } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { useState } from 'react';
import { ErrorNotice } from '../../parts/notices.tsx';
import { Section } from '../../parts/section.tsx';
import { TextBox } from '../../parts/text-box.tsx';
import { useDecide } from './use-decide.ts';

/** Records whether a call with an unknown outcome was executed. */
export function ResolveForm({ approval }: { readonly approval: Approval }) {
  const [outcome, setOutcome] = useState('');
  const [result, setResult] = useState('{}');
  const [comment, setComment] = useState('');
  const decide = useDecide(approval);
  const isDone = outcome === 'done';
  return (
    <Section title="Outcome of the call">
      <Stack>
        <Text size="sm">
          The outcome of this call is unknown. Find out in the called system whether it was
          executed.
        </Text>
        <Radio.Group label="The call" value={outcome} onChange={setOutcome} required>
          <Stack gap="xs" mt={6}>
            <Radio value="done" label="was executed" />
            <Radio value="not_done" label="was not executed" />
          </Stack>
        </Radio.Group>
        {isDone && (
          <JsonInput
            label="Result"
            description="A JSON object, as the tool would have returned it."
            value={result}
            onChange={setResult}
            validationError="This is not JSON."
            autosize
            minRows={3}
          />
        )}
        <TextBox label="Comment" value={comment} onChange={setComment} />
        {decide.error !== null && <ErrorNotice error={decide.error} />}
        <Group>
          <Button
            disabled={outcome === '' || (isDone && !isEmptyOrJson(result))}
            loading={decide.isPending}
            onClick={() =>
              decide.resolve(
                isDone ? ResolvedOutcome.DONE : ResolvedOutcome.NOT_DONE,
                isDone ? result.trim() : '',
                comment,
              )
            }
          >
            Record the outcome
          </Button>
        </Group>
      </Stack>
    </Section>
  );
}

function isEmptyOrJson(text: string): boolean {
  if (text.trim() === '') return true;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
