import { Badge } from '@mantine/core';

/** Whether the stream of a page is connected. */
export function LiveBadge({ isLive }: { readonly isLive: boolean }) {
  return (
    <Badge variant="dot" color={isLive ? 'green' : 'gray'} tt="none" fw={500}>
      {isLive ? 'live' : 'connecting'}
    </Badge>
  );
}
