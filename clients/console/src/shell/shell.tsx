import {
  ActionIcon,
  AppShell,
  Badge,
  Burger,
  Group,
  NavLink as MantineNavLink,
  Menu,
  Text,
  Tooltip,
  useComputedColorScheme,
  useMantineColorScheme,
} from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { CircleUser, LogOut, Moon, Sun } from 'lucide-react';
import { type ReactNode, useEffect } from 'react';
import { Link, NavLink, useLocation } from 'react-router';
import { PendingApprovals, usePendingApprovals } from '../api/pending-approvals.tsx';
import { useSession } from '../session/session-provider.tsx';
import { permittedPages } from './navigation.ts';

/** The frame around every page: navigation, person, theme. */
export function Shell({ children }: { readonly children: ReactNode }) {
  const [isOpen, { toggle, close }] = useDisclosure(false);
  const { pathname } = useLocation();
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new page closes the navigation of a narrow screen.
  useEffect(close, [pathname, close]);
  return (
    <PendingApprovals>
      <AppShell
        header={{ height: 56 }}
        navbar={{ width: 216, breakpoint: 'sm', collapsed: { mobile: !isOpen } }}
        padding={{ base: 'sm', sm: 'lg' }}
      >
        <a className="skip-link" href="#content">
          Skip to the content
        </a>
        <AppShell.Header px="md">
          <Group h="100%" justify="space-between" wrap="nowrap">
            <Group gap="sm" wrap="nowrap">
              <Burger
                opened={isOpen}
                onClick={toggle}
                hiddenFrom="sm"
                size="sm"
                aria-label="Navigation"
                aria-expanded={isOpen}
              />
              <Link to="/" aria-label="Writ" style={{ display: 'flex' }}>
                <img src="/writ.svg" alt="" width={28} height={28} />
              </Link>
              <Text fw={700} size="lg" visibleFrom="xs">
                Writ
              </Text>
            </Group>
            <Group gap="xs" wrap="nowrap">
              <ThemeButton />
              <PersonMenu />
            </Group>
          </Group>
        </AppShell.Header>
        <AppShell.Navbar p="sm" aria-label="Pages">
          <Navigation />
        </AppShell.Navbar>
        <AppShell.Main id="content" tabIndex={-1}>
          <div style={{ maxWidth: 1440, marginInline: 'auto' }}>{children}</div>
        </AppShell.Main>
      </AppShell>
    </PendingApprovals>
  );
}

function Navigation() {
  const session = useSession();
  const { pathname } = useLocation();
  const waiting = usePendingApprovals().approvals?.length ?? 0;
  return permittedPages(session).map(({ path, name, icon: Icon }) => (
    <MantineNavLink
      key={path}
      component={NavLink}
      to={path}
      label={name}
      active={pathname === path || pathname.startsWith(`${path}/`)}
      leftSection={<Icon size={18} aria-hidden />}
      rightSection={
        path === '/approvals' && waiting > 0 ? (
          <Badge color="yellow" autoContrast circle={waiting < 10}>
            {waiting}
          </Badge>
        ) : undefined
      }
      style={{ borderRadius: 8 }}
    />
  ));
}

function ThemeButton() {
  const { setColorScheme } = useMantineColorScheme();
  const scheme = useComputedColorScheme('light');
  const other = scheme === 'light' ? 'dark' : 'light';
  const Icon = other === 'dark' ? Moon : Sun;
  return (
    <Tooltip label={`Use the ${other} theme`}>
      <ActionIcon
        variant="subtle"
        size="lg"
        aria-label={`Use the ${other} theme`}
        onClick={() => setColorScheme(other)}
      >
        <Icon size={18} />
      </ActionIcon>
    </Tooltip>
  );
}

function PersonMenu() {
  const { caller, signOut } = useSession();
  if (caller === undefined) return null;
  return (
    <Menu position="bottom-end" width={260}>
      <Menu.Target>
        <ActionIcon variant="subtle" size="lg" aria-label={`Signed in as ${caller.subject}`}>
          <CircleUser size={20} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          {caller.subject} in tenant {caller.tenant}
          <br />
          Roles: {caller.roles.join(', ')}
        </Menu.Label>
        <Menu.Divider />
        <Menu.Item leftSection={<LogOut size={16} />} onClick={signOut}>
          Sign out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
