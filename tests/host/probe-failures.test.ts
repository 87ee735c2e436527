import { describe, expect, test } from 'vitest'
import type { Surroundings } from '../../src/host/facts.ts'
import { EXPLAINED, explainFailure } from '../../src/host/probe-failures.ts'

const around = (settings: Record<string, string>, filtered = false): Surroundings => ({ filtered, settings })
const NO_NAMESPACE =
  'bwrap: No permissions to create new namespace, likely because the kernel does not allow non-privileged user namespaces. See <https://deb.li/bubblewrap> or <file:///usr/share/doc/bubblewrap/README.Debian.gz>.'

const INSIDE_ONE: Surroundings = { ...around({}, true), container: 'llm-do' }

const FILTERED = around({}, true)
const CHROOT: Surroundings = { ...around({}), chroot: true }
const UNMAPPED: Surroundings = { ...around({}), unmapped: true }
const NET_LIMIT = around({ 'user.max_user_namespaces': '15000', 'user.max_net_namespaces': '0' })
const NO_CLONE = around({ 'kernel.unprivileged_userns_clone': '0' })
const APPARMOR = around({ 'kernel.apparmor_restrict_unprivileged_userns': '1' })
const NESTING =
  'bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)'
const NO_SOCKET = 'permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock'
const NO_DAEMON = 'Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?'

/** Messages as bubblewrap 0.8, util-linux 2.38 and docker 20 to 28 print them. */
const ROWS: [row: string, message: string, cause: string, fix: string, around?: Surroundings][] = [
  ['apparmor-uid-map', 'bwrap: setting up uid map: Permission denied', 'AppArmor', '/etc/apparmor.d/usr.bin.bwrap'],
  ['apparmor-loopback', 'bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted', 'AppArmor', 'apparmor_parser'],
  ['namespace-limit', NESTING, 'user.max_*_namespaces', 'sysctl -w user.max_user_namespaces=15000 user.max_pid'],
  ['namespace-limit', 'engine: unshare user namespace:  ENOSPC', 'user.max_*_namespaces', 'sysctl -w'],
  ['namespace-limit', 'engine: unshare namespaces:  ENOSPC', 'no further', 'user.max_net_namespaces=15000', NET_LIMIT],
  ['mount-limit', 'stage: clone layer:  ENOSPC', 'fs.mount-max', 'sysctl -w fs.mount-max'],
  ['no-space', 'stage: make layer:  ENOSPC', 'full', 'df -h'],
  ['own-sandbox', 'stage: fsopen: ENOSYS', 'inside a sandbox of llm-do exec', '--backend no-namespaces', INSIDE_ONE],
  ['own-sandbox', 'stage: make mounts private: EPERM', 'inside a sandbox', '--backend no-namespaces', INSIDE_ONE],
  ['own-sandbox', NO_NAMESPACE, 'inside a sandbox', '--backend no-namespaces', INSIDE_ONE],
  ['no-staging', 'stage: mount root: ENOENT', '/sys', 'mkdir /sys'],
  ['chroot-mounts', 'stage: make mounts private: EINVAL', 'this is a chroot', 'mount --move . /'],
  ['chroot', NO_NAMESPACE, 'this is a chroot', 'mount --move . /', CHROOT],
  ['groups', 'stage: setgroups: EPERM', 'unshare -r', 'unshare --user --map-user=1000 --map-group=1000'],
  ['unmapped', NO_NAMESPACE, 'has no id', '--map-user=1000 --map-group=1000', UNMAPPED],
  ['no-space', 'stage: file: No space left on device', 'no files left', 'df -i'],
  ['no-descriptors', 'launch: memfd:  EMFILE', 'ulimit -n', 'ulimit -n 1024'],
  ['file-size', 'launch: memfd:  EFBIG', 'ulimit -f', 'ulimit -f unlimited'],
  ['clone-disabled', NO_NAMESPACE, 'unprivileged_userns_clone=0', 'kernel.unprivileged_userns_clone=1', NO_CLONE],
  ['apparmor-denies-clone', NO_NAMESPACE, 'AppArmor', '/etc/apparmor.d/', APPARMOR],
  ['container-seccomp', NO_NAMESPACE, 'filter of the surrounding container', 'seccomp=unconfined', FILTERED],
  ['container-seccomp', 'unshare failed: Operation not permitted', 'filter', 'systempaths=unconfined', FILTERED],
  ['no-namespace', NO_NAMESPACE, 'does not let this user make namespaces', 'sysctl'],
  ['masked-proc', "bwrap: Can't mount proc on /newroot/proc: Operation not permitted", 'masked', 'systempaths='],
  ['container-apparmor', 'bwrap: Failed to make / slave: Permission denied', 'AppArmor profile', 'apparmor=unconfined'],
  ['container-apparmor', 'stage: make mounts private: /: EACCES', 'AppArmor profile of', 'apparmor=unconfined'],
  ['pivot-root', 'bwrap: pivot_root: Operation not permitted', 'forbids pivot_root', 'seccomp=unconfined'],
  ['docker-socket', NO_SOCKET, 'may not use the socket', 'rootless'],
  ['docker-down', NO_DAEMON, 'does not answer', 'systemctl start docker'],
  ['timeout', 'timed out after 5000 ms', 'did not end in time', 'doctor'],
]

describe('A failed probe is explained:', () => {
  test.each(ROWS)('%s: %s', (_row, message, why, fix, surroundings) => {
    const failure = { ok: false, step: 'bwrap', errno: '', message } as const
    const explained = explainFailure(failure, { program: '/usr/bin/bwrap', around: surroundings })
    expect(explained.why).toContain(why)
    expect(explained.fix).toContain(fix)
  })

  test('every row of the table is seen above', () => {
    expect([...new Set(ROWS.map(([row]) => row))].sort()).toEqual([...EXPLAINED].sort())
  })

  test('a step that names itself in its message is named once', () => {
    const failure = { ok: false, step: 'stage: odd', errno: 'EIO', message: 'stage: odd: EIO' } as const
    expect(explainFailure(failure, { program: 'x' }).why).toBe('stage: odd: EIO')
  })

  const UID_MAP = { ok: false, step: 'bwrap', errno: '', message: 'setting up uid map: Permission denied' } as const
  const [OWN, ODD] = ['/usr/lib/llm-do-exec', "/srv/it's mine"]
  const COPY = `sudo cp ${OWN}/apparmor /etc/apparmor.d/llm-do && sudo apparmor_parser -r /etc/apparmor.d/llm-do`
  test.each([
    ['ours, which was installed with it', `${OWN}/bin/llm-do`, OWN, COPY],
    ['another one', '/usr/bin/bwrap', OWN, 'profile usr.bin.bwrap /usr/bin/bwrap flags=(unconfined)'],
    ['ours in a directory to be quoted', `${ODD}/bin/llm-do`, ODD, "sudo cp '/srv/it'\\''s mine/apparmor' /"],
  ])('the profile is for one program and not for the whole host: %s', (_title, program, installed, fix) => {
    const surroundings = { ...around({}), appArmorProfile: `${installed}/apparmor` }
    const explained = explainFailure(UID_MAP, { program, around: surroundings })
    expect(explained.fix).toContain(fix)
    expect(explained.fix).not.toContain('sysctl')
  })

  test('what is not known is reported as it was seen, without a made-up fix', () => {
    expect(explainFailure({ ok: false, step: 'engine', errno: 'EIO', message: '' }, { program: 'x' })).toEqual({
      why: 'engine: EIO',
      fix: '',
    })
  })
})
