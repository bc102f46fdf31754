import type { MessageInitShape } from '@bufbuild/protobuf';
import { Alert, Button, Checkbox, Group, Modal, Select, Stack, TextInput } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { haltStateText } from '@writ/client/display';
import type { ScopeSchema } from '@writ/contracts/writ/control/v1/freeze_pb';
import { TriangleAlert } from 'lucide-react';
import { useEffect, useState } from 'react';
import { newRequestId } from '../../api/ids.ts';
import { ErrorNotice } from '../../parts/notices.tsx';
import { TextBox } from '../../parts/text-box.tsx';
import { useSession } from '../../session/session-provider.tsx';

/** The scope of a halt, as entered. */
export interface HaltScope {
  readonly kind: 'tenant' | 'run' | 'agent' | 'everything';
  readonly tenant: string;
  readonly runId: string;
  readonly instance: string;
}

interface Props {
  readonly isOpen: boolean;
  readonly onClose: () => void;
  /** The scope that the dialog shows when it opens. */
  readonly initialScope: HaltScope;
}

/** Orders a halt after a confirmation: the user types the name of the scope. */
export function HaltDialog({ isOpen, onClose, initialScope }: Props) {
  return (
    <Modal
      opened={isOpen}
      onClose={onClose}
      title="Halt"
      size="lg"
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      {isOpen && <HaltForm onClose={onClose} initialScope={initialScope} />}
    </Modal>
  );
}

function HaltForm({ onClose, initialScope }: Omit<Props, 'isOpen'>) {
  const { api, caller } = useSession();
  const queries = useQueryClient();
  const [scope, setScope] = useState(initialScope);
  const [reason, setReason] = useState('');
  const [endRuns, setEndRuns] = useState(false);
  const [typed, setTyped] = useState('');
  const [requestId, setRequestId] = useState(newRequestId);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a changed request needs a new request id.
  useEffect(() => setRequestId(newRequestId()), [scope, reason, endRuns]);
  const word = confirmationOf(scope);
  const halt = useMutation({
    mutationFn: () => api.control.halt({ requestId, scope: scopeMessage(scope), reason, endRuns }),
    onSuccess: async ({ halt: ordered }) => {
      if (ordered !== undefined) {
        notifications.show({ message: `Halt ${ordered.haltId}: ${haltStateText(ordered.state)}.` });
      }
      onClose();
      await queries.invalidateQueries();
    },
  });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        halt.mutate();
      }}
    >
      <Stack>
        <Alert color="red" role="note" icon={<TriangleAlert size={18} />}>
          New model calls and tool calls in the scope are rejected until the halt is lifted. Calls
          in flight are cancelled.
        </Alert>
        <ScopeFields
          scope={scope}
          onChange={setScope}
          isOperator={caller?.roles.includes('operator') ?? false}
        />
        <TextBox
          label="Reason"
          description="Recorded, and included in the error of each rejected call."
          required
          value={reason}
          onChange={setReason}
        />
        <Checkbox
          label={
            scope.kind === 'agent'
              ? 'End the agent and the agents below it (for a root agent, the run); they cannot be resumed'
              : 'End the runs in the scope; they cannot be resumed'
          }
          checked={endRuns}
          onChange={(event) => setEndRuns(event.currentTarget.checked)}
        />
        <TextInput
          label={`Type ${word} to confirm`}
          value={typed}
          onChange={(event) => setTyped(event.currentTarget.value)}
          autoComplete="off"
        />
        {halt.error !== null && <ErrorNotice error={halt.error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose}>
            Back
          </Button>
          <Button
            type="submit"
            color="red"
            loading={halt.isPending}
            disabled={word === '' || typed !== word || reason.trim() === ''}
          >
            Halt
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

interface ScopeFieldsProps {
  readonly scope: HaltScope;
  readonly onChange: (scope: HaltScope) => void;
  readonly isOperator: boolean;
}

/** The fields of a scope; only an operator may halt another tenant, or everything. */
function ScopeFields({ scope, onChange, isOperator }: ScopeFieldsProps) {
  const kinds = [
    { value: 'run', label: 'one run' },
    { value: 'agent', label: 'one agent of a run' },
    { value: 'tenant', label: 'a tenant' },
    ...(isOperator ? [{ value: 'everything', label: 'everything' }] : []),
  ];
  return (
    <>
      <Select
        label="Scope"
        data={kinds}
        value={scope.kind}
        allowDeselect={false}
        onChange={(kind) => onChange({ ...scope, kind: (kind ?? 'run') as HaltScope['kind'] })}
      />
      {scope.kind !== 'everything' && (
        <TextInput
          label="Tenant"
          value={scope.tenant}
          readOnly={!isOperator}
          onChange={(event) => onChange({ ...scope, tenant: event.currentTarget.value })}
        />
      )}
      {(scope.kind === 'run' || scope.kind === 'agent') && (
        <TextInput
          label="Run"
          value={scope.runId}
          onChange={(event) => onChange({ ...scope, runId: event.currentTarget.value })}
        />
      )}
      {scope.kind === 'agent' && (
        <TextInput
          label="Agent instance"
          value={scope.instance}
          onChange={(event) => onChange({ ...scope, instance: event.currentTarget.value })}
        />
      )}
    </>
  );
}

/** Returns the text to type as confirmation: the name of the scope. */
function confirmationOf({ kind, tenant, runId, instance }: HaltScope): string {
  switch (kind) {
    case 'tenant':
      return tenant;
    case 'run':
      return runId;
    case 'agent':
      return instance;
    case 'everything':
      return 'everything';
  }
}

function scopeMessage({
  kind,
  tenant,
  runId,
  instance: agentInstance,
}: HaltScope): MessageInitShape<typeof ScopeSchema> {
  switch (kind) {
    case 'tenant':
      return { kind: { case: 'tenant', value: tenant } };
    case 'run':
      return { kind: { case: 'run', value: { tenant, runId } } };
    case 'agent':
      return { kind: { case: 'agent', value: { tenant, runId, agentInstance } } };
    case 'everything':
      return { kind: { case: 'everything', value: {} } };
  }
}
