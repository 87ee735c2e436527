import { describe, expect, test } from 'vitest'
import type { Surroundings } from '../../src/host/facts.ts'
import { EXPLAINED, explainFailure } from '../../src/host/probe-failures.ts'

const around = (settings: Record<string, string>, filtered = false): Surroundings => ({ filtered, settings })
const NO_NAMESPACE =
  'bwrap: No permissions to create new namespace, likely because the kernel does not allow non-privileged user namespaces. See <https://deb.li/bubblewrap> or <file:///usr/share/doc/bubblewrap/README.Debian.gz>.'

const INSIDE_ONE: Surroundings = { ...around({}, true), container: 'llm-do' }

/** Messages as bubblewrap 0.8, util-linux 2.38 and docker 20 to 28 print them. */
const ROWS: readonly (readonly [
  row: string,
  message: string,
  around: Surroundings | undefined,
  cause: string,
  fix: string,
])[] = [
  [
    'apparmor-uid-map',
    'bwrap: setting up uid map: Permission denied',
    undefined,
    'AppArmor',
    '/etc/apparmor.d/usr.bin.bwrap',
  ],
  [
    'apparmor-loopback',
    'bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted',
    undefined,
    'AppArmor',
    'apparmor_parser -r',
  ],
  [
    'namespace-limit',
    'bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)',
    undefined,
    'user.max_*_namespaces',
    'sysctl -w user.max_user_namespaces=15000 user.max_pid_namespaces=15000',
  ],
  ['namespace-limit', 'engine: unshare user namespace:  ENOSPC', undefined, 'user.max_*_namespaces', 'sysctl -w'],
  [
    'namespace-limit',
    'engine: unshare namespaces:  ENOSPC',
    around({ 'user.max_user_namespaces': '15000', 'user.max_net_namespaces': '0' }),
    'no further namespaces',
    'sysctl -w user.max_net_namespaces=15000',
  ],
  ['mount-limit', 'stage: clone layer:  ENOSPC', undefined, 'fs.mount-max', 'sysctl -w fs.mount-max'],
  ['no-space', 'stage: make layer:  ENOSPC', undefined, 'full', 'df -h'],
  ['own-sandbox', 'stage: fsopen: ENOSYS', INSIDE_ONE, 'inside a sandbox of llm-do exec', '--backend no-namespaces'],
  ['own-sandbox', 'stage: make mounts private: EPERM', INSIDE_ONE, 'inside a sandbox', '--backend no-namespaces'],
  ['own-sandbox', NO_NAMESPACE, INSIDE_ONE, 'inside a sandbox', '--backend no-namespaces'],
  ['no-staging', 'stage: mount root: ENOENT', undefined, '/sys', 'mkdir /sys'],
  ['chroot-mounts', 'stage: make mounts private: EINVAL', undefined, 'this is a chroot', 'mount --move . /'],
  ['chroot', NO_NAMESPACE, { ...around({}), chroot: true }, 'this is a chroot', 'mount --move . /'],
  ['groups', 'stage: setgroups: EPERM', undefined, 'unshare -r', 'unshare --user --map-user=1000 --map-group=1000'],
  ['unmapped', NO_NAMESPACE, { ...around({}), unmapped: true }, 'has no id', '--map-user=1000 --map-group=1000'],
  ['no-space', 'launch: record of the run:  ENOSPC', undefined, 'full', 'df -h'],
  ['no-space', 'stage: file: No space left on device', undefined, 'no files left', 'df -i'],
  ['no-descriptors', 'launch: memfd:  EMFILE', undefined, 'ulimit -n', 'ulimit -n 1024'],
  ['file-size', 'launch: memfd:  EFBIG', undefined, 'ulimit -f', 'ulimit -f unlimited'],
  [
    'clone-disabled',
    NO_NAMESPACE,
    around({ 'kernel.unprivileged_userns_clone': '0' }),
    'kernel.unprivileged_userns_clone=0',
    'sysctl -w kernel.unprivileged_userns_clone=1',
  ],
  [
    'apparmor-denies-clone',
    NO_NAMESPACE,
    around({ 'kernel.apparmor_restrict_unprivileged_userns': '1' }),
    'AppArmor',
    '/etc/apparmor.d/',
  ],
  [
    'container-seccomp',
    NO_NAMESPACE,
    around({}, true),
    'seccomp filter of the surrounding container',
    'seccomp=unconfined',
  ],
  [
    'container-seccomp',
    'unshare: unshare failed: Operation not permitted',
    around({}, true),
    'seccomp filter',
    'systempaths=unconfined',
  ],
  ['no-namespace', NO_NAMESPACE, undefined, 'does not let this user make namespaces', 'sysctl'],
  [
    'masked-proc',
    "bwrap: Can't mount proc on /newroot/proc: Operation not permitted",
    undefined,
    '/proc of the surrounding container is masked',
    'systempaths=unconfined',
  ],
  [
    'container-apparmor',
    'bwrap: Failed to make / slave: Permission denied',
    undefined,
    'AppArmor profile of the surrounding container',
    'apparmor=unconfined',
  ],
  [
    'container-apparmor',
    'stage: make mounts private: /: EACCES',
    undefined,
    'AppArmor profile of the surrounding container',
    'apparmor=unconfined',
  ],
  ['pivot-root', 'bwrap: pivot_root: Operation not permitted', undefined, 'forbids pivot_root', 'seccomp=unconfined'],
  [
    'docker-socket',
    'permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock',
    undefined,
    'may not use the socket',
    'rootless',
  ],
  [
    'docker-down',
    'Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?',
    undefined,
    'does not answer',
    'systemctl start docker',
  ],
  ['timeout', 'timed out after 5000 ms', undefined, 'did not end in time', 'doctor'],
]

describe('A failed probe is explained:', () => {
  test.each(ROWS)('%s: %s', (_row, message, surroundings, cause, fix) => {
    const explained = explainFailure(
      { ok: false, step: 'bwrap', errno: '', message },
      { program: '/usr/bin/bwrap', around: surroundings },
    )
    expect(explained.cause).toContain(cause)
    expect(explained.fix).toContain(fix)
  })

  test('every row of the table is seen above', () => {
    expect([...new Set(ROWS.map(([row]) => row))].sort()).toEqual([...EXPLAINED].sort())
  })

  test('a step that names itself in its message is named once', () => {
    const failure = { ok: false, step: 'stage: odd', errno: 'EIO', message: 'stage: odd: EIO' } as const
    expect(explainFailure(failure, { program: 'x' }).cause).toBe('stage: odd: EIO')
  })

  test('the profile that was installed with our program is named; another program needs one of its own', () => {
    const around = { filtered: false, settings: {}, appArmorProfile: '/usr/lib/llm-do-exec/apparmor' }
    const failure = { ok: false, step: 'bwrap', errno: '', message: 'setting up uid map: Permission denied' } as const
    const fixFor = (program: string) => explainFailure(failure, { program, around }).fix
    expect(fixFor('/usr/lib/llm-do-exec/bin/launch')).toBe(
      'sudo cp /usr/lib/llm-do-exec/apparmor /etc/apparmor.d/llm-do && sudo apparmor_parser -r /etc/apparmor.d/llm-do',
    )
    expect(fixFor('/usr/bin/bwrap')).toContain('profile usr.bin.bwrap /usr/bin/bwrap')
  })

  test('the profile of a directory whose name is no word of a shell is one word all the same', () => {
    const around = { filtered: false, settings: {}, appArmorProfile: "/srv/it's mine/apparmor" }
    const failure = { ok: false, step: 'bwrap', errno: '', message: 'setting up uid map: Permission denied' } as const
    const { fix } = explainFailure(failure, { program: "/srv/it's mine/bin/launch", around })
    expect(fix).toMatch(/^sudo cp '\/srv\/it'\\''s mine\/apparmor' /)
  })

  test('the profile for one program comes before the switch for the whole host', () => {
    const { fix } = explainFailure(
      { ok: false, step: 'bwrap', errno: '', message: 'setting up uid map: Permission denied' },
      { program: '/opt/llm-do/bin/launch' },
    )
    expect(fix).toContain('profile opt.llm-do.bin.launch /opt/llm-do/bin/launch flags=(unconfined)')
    expect(fix).not.toContain('sysctl')
  })

  test('what is not known is reported as it was seen, without a made-up fix', () => {
    expect(explainFailure({ ok: false, step: 'engine', errno: 'EIO', message: '' }, { program: 'x' })).toEqual({
      cause: 'engine: EIO',
      fix: '',
    })
  })
})
