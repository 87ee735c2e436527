import { describe, expect, test } from 'vitest'
import { readCommandLine } from '../../src/cli/exec-arguments.ts'
import { FOREIGN_OPTIONS, foreignLine, foreignOptionAt } from '../../src/cli/foreign-options.ts'
import { mergePolicies } from '../../src/policy/merge.ts'
import { flagLayer } from '../../src/policy/option-layer.ts'
import { OPTIONS } from '../../src/policy/options.ts'
import { checkLayers } from '../../src/policy/validate-layers.ts'
import { shellWord } from '../../src/report/hints.ts'

const lineOf = (words: readonly string[]): string => {
  const found = foreignOptionAt(words, 0)
  return found === undefined ? '' : foreignLine(found, shellWord)
}

/** Words of another program, as its users write them => the same in ours. A blank divides words, and `␣` is a blank. */
const MEANT = `
  -v /a:/b => --rw /a:/b | -v /a:/b:ro => --ro /a:/b | -v /a:/b:z,ro => --ro /a:/b | -v/a:/b => --rw /a:/b
  -v /data => --tmpfs /data | --volume .:/work => --rw .:/work | --volume=.:/work:ro => --ro .:/work
  --mount type=bind,source=/a,target=/b => --rw /a:/b | --mount type=bind,src=/a,dst=/b,readonly => --ro /a:/b
  --mount=type=tmpfs,destination=/b => --tmpfs /b | --bind /a /b => --rw /a:/b | --bind /a /a => --rw /a
  --bind=/a,/b => --rw /a:/b | --bind-try /a /b => --rw /a:/b | --ro-bind /a /b => --ro /a:/b
  --ro-bind-try /a /b => --ro /a:/b | --dev-bind /a /b => --rw /a:/b | --dev-bind-try /a /a => --rw /a
  --dir /a => --tmpfs /a | --whitelist=/a => --rw /a | --read-write=/a => --rw /a | --read-only=/a => --ro /a
  --private=/a => --rw /a:/home/sandbox | --allow-read=/a,.,b => --ro /a --ro b
  --allow-write => --rw . | --allow-write=/a => --rw /a | -e K=V => --env K=V | -e K => --env K
  --setenv K V=W => --env K=V=W | --allow-env=A,B => --env A --env B | --allow-env => --env NAME
  -w /a => --workdir /a | --cwd /a => --workdir /a | --chdir=/a => --workdir /a | -C /a => --workdir /a | -t => --tty
  -it => --tty | -ti => --tty | --network none => --net none | --network=host => --net host
  --network bridge => --net record | --unshare-net => --net none | --share-net => --net host
  -A => --rw . --net host | --allow-all => --rw . --net host | --shm-size 1g => --shm 1g
  --deny-net => --net none | --deny-net=a.org => --deny-host a.org
  --allow-net => --net record | --allow-net=a.org,b.org:8080 => --allow-host a.org --allow-host b.org:8080
  -p 8080:80 => --publish 8080:80 | -p 127.0.0.1:8080:80/tcp => --publish 127.0.0.1:8080:80 | -p8080 => --publish 8080
  -m 512m => --memory 512m | -m1g => --memory 1g | --pids-limit 64 => --pids 64
  --security-opt seccomp=unconfined => --seccomp off | --security-opt=seccomp:/a/b.json => --seccomp /a/b.json
  --verbose => --log | --debug => --log | --no-network => --net none | --no-net => --net none | --offline => --net none
  --dry-run => --plan | --gpus all => --gpu | -eK=a␣b => --env K=a␣b`
  .trim()
  .split(/ \| |\n {2}/)
  .map(
    (row) =>
      row.split(' => ').map((side) => side.split(' ').map((word) => word.replaceAll('␣', ' '))) as [string[], string[]],
  )

/** Words without a counterpart among our options; the reason. */
const OTHERS: readonly (readonly [written: readonly string[], line: RegExp])[] = [
  [['--ro-bind', '/usr', '/usr'], /^--ro-bind: leave it out: the directories of the system/],
  [['--dev-bind', '/dev/kvm', '/dev/kvm'], /--device \/dev\/kvm/],
  [['--read-only'], /^--read-only: leave it out/],
  [['--readonly'], /leave it out/],
  ...['--unshare-user-try', '--unshare-cgroup-try', '--as-pid-1'].map(
    (flag) => [[flag], /leave it out: .*namespaces/] as const,
  ),
  [['--blacklist=/a'], /^--blacklist: leave it out: only what is named/],
  [['--private'], /^--private: leave it out: the home/],
  [['--allow-read'], /^--allow-read: leave it out: the current directory/],
  [['--allow-read=.'], /leave it out/],
  [['--private-home'], /leave it out/],
  ...['tmp', 'dev', 'etc', 'bin'].map((part) => [[`--private-${part}`], /leave it out/] as const),
  [['--proc', '/proc'], /leave it out: \/proc and \/dev/],
  [['--dev', '/dev'], /leave it out/],
  [['--unsetenv', 'K'], /leave it out/],
  [['--clearenv'], /leave it out/],
  [['--env-file', 'f'], /^--env-file: name each variable \(--env NAME=VALUE\)/],
  [['-i'], /^-i: leave it out: stdin/],
  [['--interactive'], /leave it out: stdin/],
  ...['-d', '--detach', '-dit'].map((flag) => [[flag], /^-[-\w]+: llm-do run starts/] as const),
  ...['-q', '--quiet'].map((flag) => [[flag], /leave it out: nothing is printed/] as const),
  ...['--dns', '--dns-search'].map((flag) => [[flag, '192.0.2.1'], /--add-host NAME=ADDRESS/] as const),
  [['--network', 'mine'], /^--network: there are no networks by name: --allow-host/],
  [['-p', '53:53/udp'], /^-p: only TCP/],
  [['--memory-swap', '1g'], /--swap SIZE/],
  ...['--ulimit', '--oom-score-adj'].map((flag) => [[flag, '1'], /--memory, --cpus/] as const),
  ...['-u', '--user', '--uid', '--gid'].map(
    (flag) => [[flag, '1000'], /leave it out: the command is never root/] as const,
  ),
  [['--cap-drop', 'ALL'], /leave it out: the command has no capability/],
  [['--caps.drop=all'], /leave it out/],
  [['--cap-add', 'SYS_ADMIN'], /no capability can be given/],
  [['--privileged'], /no capability can be given/],
  [['--security-opt', 'no-new-privileges'], /leave it out: the command can gain no privilege/],
  [['--nonewprivs'], /leave it out/],
  [['--noroot'], /leave it out/],
  ...['all', 'user', 'ipc', 'pid', 'uts', 'cgroup'].map(
    (kind) => [[`--unshare-${kind}`], /leave it out: .*namespaces/] as const,
  ),
  ...['ipc', 'pid', 'uts', 'userns', 'cgroupns'].map((kind) => [[`--${kind}`, 'host'], /leave it out/] as const),
  [['--rm'], /^--rm: leave it out: nothing is left/],
  [['--name', 'n'], /llm-do run --name n starts/],
  ...['--restart', '--label', '--log-driver'].map((flag) => [[flag, 'x'], /leave it out: nothing/] as const),
  ...['--platform', '--pull'].map((flag) => [[flag, 'x'], /leave it out: the programs/] as const),
  [['--noprofile'], /leave it out: the options say it all/],
  ...['sound', '3d', 'video'].map((part) => [[`--no${part}`], /leave it out: no device/] as const),
  ...['run', 'sys', 'ffi'].map((part) => [[`--allow-${part}`], /leave it out: every program/] as const),
  [['--no-prompt'], /leave it out/],
  [['--symlink', 'usr/bin', '/bin'], /leave it out: the links/],
  ...['read', 'write'].map((part) => [[`--deny-${part}`, '/a'], /leave it out: only what is named/] as const),
  [['--hostname', 'n'], /leave it out/],
  [['--new-session'], /leave it out/],
  [['--init'], /leave it out/],
  [['--entrypoint', 'sh'], /what stands behind --/],
  [['--settings', 'f.json'], /--profile FILE/],
]

describe('an option of another program', () => {
  test.each(MEANT)('%j is %j', async (written, ours) => {
    expect(lineOf(written)).toMatch(/^-[-\w.]+: did you mean /)
    expect(lineOf(written)).toContain(`did you mean ${ours.map(shellWord).join(' ')}?`)
    // The suggestion is accepted.
    const { given, command } = readCommandLine([...ours, '--', 'x'], true)
    expect(command).toEqual(['x'])
    const layers = await checkLayers([flagLayer(given, '/w')])
    expect(() => mergePolicies(layers, { profile: 'default', home: '/home/ann' })).not.toThrow()
  })

  test.each(OTHERS)('%j: %s', (written, line) => {
    expect(lineOf(written)).toMatch(line)
  })

  test.each(FOREIGN_OPTIONS.flatMap(({ spellings }) => spellings))('%s stands in a row of these tests', (spelling) => {
    const written = [...MEANT, ...OTHERS].map(([[word = '']]) => word.split('=')[0])
    expect(written).toContain(spelling)
  })

  test.each(FOREIGN_OPTIONS.flatMap(({ spellings }) => spellings))('%s is none of ours', (spelling) => {
    expect(OPTIONS.map(({ name }) => `--${name}`)).not.toContain(spelling)
  })

  test.each(FOREIGN_OPTIONS.flatMap(({ spellings }) => spellings))('%s is told without a value, too', (spelling) => {
    expect(lineOf([spelling])).toContain(spelling)
    expect(lineOf([spelling, '--', 'x'])).toBe(lineOf([spelling]))
  })
})

describe('a command line of another program', () => {
  const problemOf = (words: readonly string[], before?: readonly string[]) => {
    try {
      readCommandLine(words, true, { ...(before && { before }), isNamed: (word) => word === 'web' })
    } catch (error) {
      return error
    }
    return undefined
  }

  test('is refused as a whole, with the same line in words of ours', () => {
    const line = ['--rm', '-it', '-v', '/a b:/b:ro', '--memory', '1g', '-e', 'K=V', 'sh', '-i', '--rm']
    expect(problemOf(line)).toMatchObject({
      code: 'USAGE',
      message: '--rm: leave it out: nothing is left of a run.',
      problems: [
        '--rm: leave it out: nothing is left of a run.',
        '-it: did you mean --tty?',
        "-v: did you mean --ro '/a b:/b'?",
        '-e: did you mean --env K=V?',
      ],
      hint: "llm-do exec --tty --ro '/a b:/b' --memory 1g --env K=V -- sh -i --rm",
    })
  })

  test('names the image that it is to leave out', () => {
    const image = 'alpine: leave out the image: the programs of this machine are there; or --image alpine.'
    expect(problemOf(['--rm', 'alpine', 'sh'])).toMatchObject({ problems: [expect.anything(), image] })
  })

  test('keeps its script, and what may follow it', () => {
    expect(problemOf(['-w', '/a', '-lc', 'x y', '--network', 'none', 'name'])).toMatchObject({
      hint: "llm-do exec --workdir /a --net none -lc 'x y' name",
    })
  })

  test.each([
    ['exec', '-d --name web -p 8080:80 -- ./serve', 'llm-do run --name web --publish 8080:80 -- ./serve'],
    ['exec', '-dit --rm alpine ./serve', 'llm-do run -- ./serve'],
    [
      'run',
      '--name web -d -v .:/app -w /app node:20 npm start',
      'llm-do run --name web --rw .:/app --workdir /app -- npm start',
    ],
    ['run', '--rm -it -v .:/app alpine ls -l', 'llm-do exec --tty --rw .:/app -- ls -l'],
    ['exec', '--rm -it ubuntu', 'llm-do exec --tty -- sh'],
    ['exec', '--rm ghcr.io/a/b:1 ls', 'llm-do exec -- ls'],
    ['exec', '-it web bash -l', 'llm-do exec --in web --tty -- bash -l'],
    ['exec', '-i web', 'llm-do exec --in web -- sh'],
    ['exec', '-it -- web x', 'llm-do exec --tty -- web x'],
    ['exec', '--memory-swap 1g web x', 'llm-do exec --help'],
    ['run', '--rm -- ./serve', 'llm-do run -- ./serve'],
    ['exec', '--rm -- node:20 x', 'llm-do exec -- node:20 x'],
    ['exec', '--rm ./a:b x', 'llm-do exec -- ./a:b x'],
    ['exec', '--verbose node:20 x', 'llm-do exec --log -- node:20 x'],
  ])('of docker %s %s is %s', (verb, line, hint) => {
    const words = line.split(' ')
    const isNamed = verb === 'run' && words[0] === '--name'
    const before = verb === 'exec' ? undefined : isNamed ? words.slice(0, 2) : []
    expect(problemOf(isNamed ? words.slice(2) : words, before)).toMatchObject({ hint })
  })

  test('has no such line where a part of it cannot be said', () => {
    expect(problemOf(['--privileged', '--rm', '--', 'x'])).toMatchObject({ hint: 'llm-do exec --help' })
  })

  test.each([[['-e', '-c', 'x']], [['-v', '-u', '-c', 'x']], [['-i', '-c', 'x']], [['-e', './x.sh']]])(
    '%j is one of a shell',
    (words) => {
      expect(problemOf(words)).toBeUndefined()
    },
  )

  test.each([
    ['--memry', '--memory'],
    ['--netw', '--net'],
    ['--time-out', '--timeout'],
  ])('%s, which no program has, is near %s', (written, near) => {
    expect(problemOf([written, '1', '--', 'x'])).toMatchObject({ message: expect.stringContaining(`mean ${near}`) })
  })
})
