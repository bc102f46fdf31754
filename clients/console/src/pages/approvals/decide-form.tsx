import {
  Alert,
  Button,
  Checkbox,
  Group,
  JsonInput,
  NumberInput,
  Stack,
  Text,
  TextInput,
} from '@mantine/core';
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
  formArguments,
  hasClearedNumber,
  isNumber,
  type JsonValue,
  shownValue,
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
  const [entered, setEntered] = useState<Readonly<Record<string, JsonValue>>>({});
  const [comment, setComment] = useState('');
  const decide = useDecide(approval);
  const changes = changesJson(form, entered);
  const mayEdit = rights?.mayEdit === true && editableArguments.length > 0;
  const enter = (name: string, value: JsonValue): void => {
    decide.reset();
    setEntered({ ...entered, [name]: value });
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
                value={shownValue(argument, entered)}
                onChange={(value) => enter(argument.name, value)}
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
          {changes !== undefined || (mayEdit && rights?.mayApprove !== true) ? (
            <Button
              color="green.9"
              loading={decide.isPending}
              disabled={changes === undefined || hasClearedNumber(form, entered)}
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
  value,
  onChange,
}: {
  readonly argument: FormArgument;
  /** Whether the reader may change the arguments that the policy does not lock. */
  readonly mayEdit: boolean;
  readonly value: JsonValue;
  readonly onChange: (value: JsonValue) => void;
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
  if (isNumber(argument)) {
    return (
      <NumberInput
        label={label}
        description={description}
        value={typeof value === 'number' ? value : ''}
        decimalScale={editable.decimals ?? 9}
        onChange={(next) => onChange(typeof next === 'number' ? next : null)}
        hideControls
      />
    );
  }
  if (typeof proposed === 'boolean') {
    return (
      <Checkbox
        label={label}
        description={description}
        checked={value === true}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
    );
  }
  if (typeof proposed === 'string' || proposed === null) {
    return (
      <TextBox
        label={label}
        description={description}
        value={typeof value === 'string' ? value : ''}
        onChange={onChange}
        minRows={1}
      />
    );
  }
  return <JsonField label={label} description={description} value={value} onChange={onChange} />;
}

function JsonField({
  label,
  description,
  value,
  onChange,
}: {
  readonly label: string;
  readonly description: string;
  readonly value: JsonValue;
  readonly onChange: (value: JsonValue) => void;
}) {
  const [text, setText] = useState(() => JSON.stringify(value, null, 2));
  return (
    <JsonInput
      label={label}
      description={description}
      value={text}
      validationError="This is not JSON."
      onChange={(next) => {
        setText(next);
        try {
          onChange(JSON.parse(next) as JsonValue);
        } catch {
          // The field shows that the text is not JSON; the last valid value is kept.
        }
      }}
      autosize
      minRows={2}
    />
  );
}
