import { Alert, Button, Checkbox, Group, JsonInput, Stack, Text, TextInput } from '@mantine/core';
import { printable } from '@writ/client/display';
import type { Approval } from '@writ/contracts/writ/approval/v1/approval_pb';
import { Lock } from 'lucide-react';
import { useMemo, useState } from 'react';
import { ErrorNotice } from '../../parts/notices.tsx';
import { Section } from '../../parts/section.tsx';
import { TextBox } from '../../parts/text-box.tsx';
import {
  changesJson,
  type FormArgument,
  fieldOf,
  formArguments,
  hasProblem,
  type Input,
  type Inputs,
  inputOf,
  readInput,
} from './edited-arguments.ts';
import { useDecide } from './use-decide.ts';

/** Approves, edits and approves, or rejects an action. Arguments that the policy locks are read-only. */
export function DecideForm({ approval }: { readonly approval: Approval }) {
  const { readerRights: rights, editableArguments, action } = approval;
  const kind = action?.kind;
  const isCall = kind?.case === 'tool' || kind?.case === 'clientTool';
  const argumentsJson = isCall ? kind.value.argumentsJson : '{}';
  const form = useMemo(
    () => formArguments(argumentsJson, editableArguments),
    [argumentsJson, editableArguments],
  );
  const mayEdit = rights?.mayEdit === true && editableArguments.length > 0;
  const [entered, setEntered] = useState<Inputs>({});
  const inputs = mayEdit ? entered : {};
  const [comment, setComment] = useState('');
  const decide = useDecide(approval);
  const changes = changesJson(form, inputs);
  const isEdited = changes !== undefined || hasProblem(form, inputs);
  const enter = (name: string, input: Input): void => {
    decide.reset();
    setEntered({ ...entered, [name]: input });
  };
  return (
    <Section title="Your decision">
      <Stack>
        {rights !== undefined && rights.refusal !== '' && (
          <Alert color="yellow" role="note" title="You may not approve it as it is">
            {printable(rights.refusal)}
          </Alert>
        )}
        {isCall && (
          <Stack gap="sm" component="fieldset" style={{ border: 0, margin: 0, padding: 0 }}>
            <Text component="legend" size="sm" fw={600} p={0} mb={6}>
              Arguments
            </Text>
            {form.map((argument) => (
              <ArgumentField
                key={argument.name}
                argument={argument}
                mayEdit={mayEdit}
                input={inputOf(inputs, argument)}
                onChange={(input) => enter(argument.name, input)}
              />
            ))}
          </Stack>
        )}
        <TextBox
          label="Comment"
          description="Recorded with the decision, and shown to the agent."
          value={comment}
          onChange={setComment}
        />
        {decide.error !== null && <ErrorNotice error={decide.error} />}
        {decide.proposal !== '' && (
          <Alert color="yellow" title="A rule changes your edit; nothing was approved">
            {printable(decide.proposal)}
          </Alert>
        )}
        <Group>
          {isEdited || (mayEdit && rights?.mayApprove !== true) ? (
            <Button
              color="green.9"
              loading={decide.isPending}
              disabled={changes === undefined}
              onClick={() => changes !== undefined && decide.edit(changes, comment)}
            >
              Approve with changes
            </Button>
          ) : (
            rights?.mayApprove === true && (
              <Button
                color="green.9"
                loading={decide.isPending}
                onClick={() => decide.approve(comment)}
              >
                Approve
              </Button>
            )
          )}
          <Button
            color="red"
            variant="outline"
            loading={decide.isPending}
            onClick={() => decide.reject(comment)}
          >
            Reject
          </Button>
        </Group>
      </Stack>
    </Section>
  );
}

function ArgumentField({
  argument,
  mayEdit,
  input,
  onChange,
}: {
  readonly argument: FormArgument;
  /** Whether the reader may change the arguments that the policy does not lock. */
  readonly mayEdit: boolean;
  readonly input: Input;
  readonly onChange: (input: Input) => void;
}) {
  const { name, editable, value: proposed } = argument;
  const label = printable(name);
  if (editable === undefined || !mayEdit) {
    return (
      <TextInput
        label={label}
        description={editable === undefined ? 'Locked by the policy' : 'You may not change it'}
        value={printable(typeof proposed === 'string' ? proposed : JSON.stringify(proposed))}
        readOnly
        rightSection={<Lock size={14} aria-hidden />}
        variant="filled"
      />
    );
  }
  const cap = editable.maxJson === '' ? '' : `At most ${editable.maxJson}, your cap. `;
  const description = `${cap}Proposed: ${printable(JSON.stringify(proposed))}`;
  const entry = readInput(argument, input);
  const error = 'problem' in entry ? entry.problem : undefined;
  const text = String(input);
  switch (fieldOf(argument)) {
    case 'number':
      // A field for numbers would reformat what the person types; this one contains exactly that text. It has no
      // inputMode, because the numeric keyboard of some phones has a comma instead of the point.
      return (
        <TextInput
          label={label}
          description={description}
          error={error}
          value={text}
          onChange={(event) => onChange(event.currentTarget.value)}
        />
      );
    case 'checkbox':
      return (
        <Checkbox
          label={label}
          description={description}
          checked={input === true}
          onChange={(event) => onChange(event.currentTarget.checked)}
        />
      );
    case 'text':
      return (
        <TextBox
          label={label}
          description={description}
          value={text}
          onChange={onChange}
          minRows={1}
        />
      );
    case 'json':
      return (
        <JsonInput
          label={label}
          description={description}
          error={error}
          validationError={error}
          value={text}
          onChange={onChange}
          autosize
          minRows={2}
        />
      );
  }
}
