import { Badge } from '@mantine/core';

/** Whether the stream of a page is connected; with an error, it is not opened again, or the error lasts. */
export function LiveBadge({
  isLive,
  error,
}: {
  readonly isLive: boolean;
  readonly error: unknown;
}) {
  const state = isLive ? 'live' : error === undefined ? 'connecting' : 'disconnected';
  return (
    <Badge variant="dot" color={isLive ? 'green' : 'gray'} tt="none" fw={500}>
      {state}
    </Badge>
  );
}
