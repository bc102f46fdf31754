import { Button, Menu } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type Run, RunState } from '@writ/contracts/writ/run/v1/run_pb';
import { AgentKind } from '@writ/contracts/writ/supervision/v1/manifest_pb';
import { Ban, ChevronDown, CircleCheck, OctagonPause } from 'lucide-react';
import { useEffect, useState } from 'react';
import { newRequestId } from '../../api/ids.ts';
import { ConfirmDialog } from '../../parts/confirm-dialog.tsx';
import { TextBox } from '../../parts/text-box.tsx';
import { useSession } from '../../session/session-provider.tsx';
import { HaltDialog } from '../halts/halt-dialog.tsx';

const LIVE: readonly RunState[] = [
  RunState.PENDING,
  RunState.RUNNING,
  RunState.SUSPENDED,
  RunState.PARKED,
  RunState.WAITING_FOR_INPUT,
];

/** The actions on a run that the roles of the person permit. */
export function RunActions({ run }: { readonly run: Run }) {
  const { can } = useSession();
  const [dialog, setDialog] = useState<'cancel' | 'close' | 'halt'>();
  const mayCancel = can('writ.run.v1.RunService/CancelRun') && LIVE.includes(run.state);
  const mayHalt = can('writ.control.v1.ControlService/Halt') && LIVE.includes(run.state);
  const mayClose =
    run.kind === AgentKind.EXTERNAL &&
    can('writ.run.v1.RunService/CloseRun') &&
    LIVE.includes(run.state);
  if (!mayCancel && !mayHalt && !mayClose) return null;
  const close = (): void => setDialog(undefined);
  return (
    <>
      <Menu position="bottom-end">
        <Menu.Target>
          <Button variant="default" rightSection={<ChevronDown size={16} />}>
            Actions
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {mayClose && (
            <Menu.Item leftSection={<CircleCheck size={16} />} onClick={() => setDialog('close')}>
              Close the run
            </Menu.Item>
          )}
          {mayCancel && (
            <Menu.Item leftSection={<Ban size={16} />} onClick={() => setDialog('cancel')}>
              Cancel the run
            </Menu.Item>
          )}
          {mayHalt && (
            <Menu.Item
              color="red"
              leftSection={<OctagonPause size={16} />}
              onClick={() => setDialog('halt')}
            >
              Halt the run
            </Menu.Item>
          )}
        </Menu.Dropdown>
      </Menu>
      <CloseDialog run={run} isOpen={dialog === 'close'} onClose={close} />
      <CancelDialog run={run} isOpen={dialog === 'cancel'} onClose={close} />
      <HaltDialog
        isOpen={dialog === 'halt'}
        onClose={close}
        initialScope={{ kind: 'run', tenant: run.tenant, runId: run.runId, instance: '' }}
      />
    </>
  );
}

interface DialogProps {
  readonly run: Run;
  readonly isOpen: boolean;
  readonly onClose: () => void;
}

function CloseDialog({ run, isOpen, onClose }: DialogProps) {
  const { api } = useSession();
  const queries = useQueryClient();
  const [requestId] = useState(newRequestId);
  const close = useMutation({
    mutationFn: () => api.runs.closeRun({ requestId, runId: run.runId }),
    onSuccess: async () => {
      notifications.show({ message: `Run ${run.runId} is being closed.` });
      onClose();
      await queries.invalidateQueries({ queryKey: ['run', run.runId] });
    },
  });
  return (
    <ConfirmDialog
      title="Close the run"
      isOpen={isOpen}
      onClose={onClose}
      action={close}
      onConfirm={close.mutate}
      explanation="The run is marked as completed, and further requests of its program are rejected."
      back="Keep it"
    />
  );
}

function CancelDialog({ run, isOpen, onClose }: DialogProps) {
  const { api } = useSession();
  const queries = useQueryClient();
  const [reason, setReason] = useState('');
  const [requestId, setRequestId] = useState(newRequestId);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a changed reason needs a new request id.
  useEffect(() => setRequestId(newRequestId()), [reason]);
  const cancel = useMutation({
    mutationFn: () => api.runs.cancelRun({ requestId, runId: run.runId, reason }),
    onSuccess: async () => {
      notifications.show({ message: `Run ${run.runId} is being cancelled.` });
      onClose();
      await queries.invalidateQueries({ queryKey: ['run', run.runId] });
    },
  });
  return (
    <ConfirmDialog
      title="Cancel the run"
      isOpen={isOpen}
      onClose={onClose}
      action={cancel}
      onConfirm={cancel.mutate}
      explanation="Its agents stop, and calls in flight are aborted. A cancelled run cannot be resumed."
      back="Keep it"
      color="red"
    >
      <TextBox
        label="Reason"
        description="Recorded in the audit record."
        value={reason}
        onChange={setReason}
      />
    </ConfirmDialog>
  );
}
