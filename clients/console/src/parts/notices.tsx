import { Alert, Button, Center, Group, Loader, Paper, Stack, Text } from '@mantine/core';
import { printable } from '@writ/client/display';
import { CircleAlert, Inbox } from 'lucide-react';
import type { ReactNode } from 'react';
import { sentenceOf } from '../api/errors.ts';

/** Shows the message of an error, with an optional retry button. */
export function ErrorNotice({
  error,
  onRetry,
}: {
  readonly error: unknown;
  readonly onRetry?: () => unknown;
}) {
  return (
    <Alert color="red" role="alert" icon={<CircleAlert size={18} />}>
      <Group justify="space-between">
        <Text size="sm">{printable(sentenceOf(error))}</Text>
        {onRetry !== undefined && (
          <Button size="xs" variant="default" onClick={() => void onRetry()}>
            Retry
          </Button>
        )}
      </Group>
    </Alert>
  );
}

/** The notice that a page shows if there is nothing to list. */
export function EmptyNotice({
  title,
  children,
}: {
  readonly title: string;
  readonly children?: ReactNode;
}) {
  return (
    <Paper withBorder p="xl">
      <Stack align="center" gap="xs">
        <Inbox size={28} aria-hidden />
        <Text fw={600}>{title}</Text>
        {children !== undefined && (
          <Text className="muted" size="sm" ta="center">
            {children}
          </Text>
        )}
      </Stack>
    </Paper>
  );
}

/** Shows that a page is loading. */
export function Loading() {
  return (
    <Center p="xl">
      <Loader aria-label="Loading" />
    </Center>
  );
}
