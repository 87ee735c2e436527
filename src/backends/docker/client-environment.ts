/** Selects the variables of the caller that a docker or podman client gets. Pure. */
import { dirname } from 'node:path'
import { SYSTEM_PATH } from '../run-kit.ts'

/**
 * Where the daemon is, which configuration and credentials it wants, where a client may put its files. A name that is not
 * here does not reach it: NODE_OPTIONS, LD_PRELOAD, GODEBUG, proxies with passwords, and above all the caller's PATH.
 */
export const CLIENT_NAMES: ReadonlySet<string> = new Set([
  'CONTAINERS_CONF',
  'CONTAINERS_REGISTRIES_CONF',
  'CONTAINERS_STORAGE_CONF',
  'CONTAINER_CONNECTION',
  'CONTAINER_HOST',
  'CONTAINER_SSHKEY',
  'DBUS_SESSION_BUS_ADDRESS',
  'DOCKER_API_VERSION',
  'DOCKER_CERT_PATH',
  'DOCKER_CONFIG',
  'DOCKER_CONTEXT',
  'DOCKER_DEFAULT_PLATFORM',
  'DOCKER_HOST',
  'DOCKER_TLS',
  'DOCKER_TLS_VERIFY',
  'HOME',
  'REGISTRY_AUTH_FILE',
  'SSH_AUTH_SOCK',
  'STORAGE_DRIVER',
  'TMPDIR',
  'USER',
  'XDG_CONFIG_HOME',
  'XDG_DATA_HOME',
  'XDG_RUNTIME_DIR',
  // Windows programs do not start without some of these.
  'APPDATA',
  'LOCALAPPDATA',
  'PATHEXT',
  'PROGRAMDATA',
  'PROGRAMFILES',
  'SYSTEMDRIVE',
  'SYSTEMROOT',
  'TEMP',
  'TMP',
  'USERPROFILE',
  'WINDIR',
])

/**
 * Its PATH leads to its own helpers: ssh, credential helpers, podman's runtime and newuidmap.
 * @param client absolute path of the client, whose directory comes last: some are installed with their helpers
 */
export function clientEnvironment(
  hostEnv: Readonly<Record<string, string | undefined>>,
  client: string,
): Record<string, string> {
  const passed = Object.entries(hostEnv).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && CLIENT_NAMES.has(entry[0].toUpperCase()),
  )
  return { ...Object.fromEntries(passed), PATH: clientPath(hostEnv, client) }
}

function clientPath(hostEnv: Readonly<Record<string, string | undefined>>, client: string): string {
  const windows = hostEnv['SYSTEMROOT'] ?? hostEnv['SystemRoot']
  if (process.platform === 'win32') return [`${windows ?? 'C:\\Windows'}\\System32`, dirname(client)].join(';')
  return [...new Set([...SYSTEM_PATH.split(':'), dirname(client)])].join(':')
}
