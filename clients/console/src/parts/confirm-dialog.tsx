import { Button, Group, Modal, Stack, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { ErrorNotice } from './notices.tsx';

/**
 * Asks for confirmation of an action; if the action fails, stays open and shows the error. The title and the button
 * name the action.
 */
export function ConfirmDialog({
  title,
  isOpen,
  onClose,
  action: { error, isPending, reset },
  onConfirm,
  explanation,
  back = 'Back',
  color,
  children,
}: {
  readonly title: string;
  readonly isOpen: boolean;
  readonly onClose: () => void;
  readonly action: {
    readonly error: unknown;
    readonly isPending: boolean;
    readonly reset: () => void;
  };
  readonly onConfirm: () => void;
  readonly explanation: ReactNode;
  readonly back?: string;
  readonly color?: string;
  readonly children?: ReactNode;
}) {
  // The dialog stays open during the action, because it shows why the action failed. Closing it removes the error,
  // because it may be opened for another target afterwards.
  const close = (): void => {
    if (isPending) return;
    reset();
    onClose();
  };
  return (
    <Modal
      opened={isOpen}
      onClose={close}
      title={title}
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      <Stack>
        <Text size="sm">{explanation}</Text>
        {children}
        {error !== null && <ErrorNotice error={error} />}
        <Group justify="flex-end">
          <Button variant="default" disabled={isPending} onClick={close}>
            {back}
          </Button>
          <Button {...(color !== undefined && { color })} loading={isPending} onClick={onConfirm}>
            {title}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
