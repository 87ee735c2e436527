/** Flags for what only profiles could say before: what they do to a real run. */
import { chmod, mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { temporaryDirectory } from '../support/directory.ts'
import { describeWith } from '../support/needs.ts'
import { callers, type User, uidOf } from '../support/users.ts'
import { runForText } from './directory.ts'

/** The run of a command in a directory of its user. */
async function placeOf(as: User) {
  const cwd = await temporaryDirectory({ owner: as, mode: 0o755 })
  const run = (...argv: readonly string[]) => runForText(argv, { as, cwd })
  return { cwd, run }
}

/** KiB of a file system, as df says it. */
const sizeOf = (place: string) => `df -Pk ${place} | awk 'NR == 2 { print $2 }'`

describeWith('userns', 'a flag of', () => {
  describe.each(callers())('%s', (as) => {
    test("--home DIR is a home that stays, beside the caller's directory", async () => {
      const { cwd, run } = await placeOf(as)
      const first = await run('--home', './home:create', '-c', 'echo kept >~/file; pwd')
      expect(first).toEqual({ status: 0, out: '/workspace\n', err: '' })
      expect(await readFile(join(cwd, 'home/file'), 'utf8')).toBe('kept\n')
      expect((await stat(join(cwd, 'home/file'))).uid).toBe(uidOf(as))
      expect(await run('--home', './home:ro', '-c', 'cat ~/file; echo no >~/file')).toMatchObject({
        status: expect.not.stringMatching('^0$'),
        out: 'kept\n',
      })
      expect(await readFile(join(cwd, 'home/file'), 'utf8')).toBe('kept\n')
    })

    test('--home, --shm, --run and --tmp SIZE bound what is in memory', async () => {
      const { run } = await placeOf(as)
      const places = ['~', '/dev/shm', '/run', '/tmp']
      const { out } = await run(
        ...['--home', '5m', '--shm', '3m', '--run', '2m', '--tmp', '4m', '--swap', '1m'],
        ...['-c', places.map(sizeOf).join('; ')],
      )
      expect(out).toBe('5120\n3072\n2048\n4096\n')
    })

    test('a zone ends in :optional where it may be missing, and in :create where it is made', async () => {
      const { cwd, run } = await placeOf(as)
      expect(await run('--ro', './none', '--', 'true')).toMatchObject({ status: 125 })
      expect(await run('--ro', './none:optional', '--', 'ls')).toEqual({ status: 0, out: '', err: '' })
      expect(await run('--rw', './made:/made:create', '-c', 'echo x >/made/file')).toMatchObject({ status: 0 })
      expect(await readFile(join(cwd, 'made/file'), 'utf8')).toBe('x\n')
    })

    test('a zone ends in :secret where no network may stand beside it', async () => {
      const { run, cwd } = await placeOf(as)
      await mkdir(join(cwd, 'keys'))
      const options = ['--net', 'host', '--after-secrets', 'deny']
      expect((await run(...options, '--ro', './keys:/keys', '--', 'true')).status).toBe(0)
      const refused = { status: 125, err: expect.stringMatching(/POLICY_INVALID: .*is secret/) }
      expect(await run(...options, '--ro', './keys:/keys:secret', '--', 'true')).toMatchObject(refused)
    })

    test('--protect keeps one more path', async () => {
      const { cwd, run } = await placeOf(as)
      await mkdir(join(cwd, 'deploy'))
      await writeFile(join(cwd, 'deploy/key'), 'old\n')
      await chmod(join(cwd, 'deploy'), 0o777)
      await chmod(join(cwd, 'deploy/key'), 0o666)
      const write = ['-c', 'echo new >deploy/key']
      expect((await run('--rw', '.', '--protect', 'deploy/key', ...write)).status).not.toBe(0)
      expect(await readFile(join(cwd, 'deploy/key'), 'utf8')).toBe('old\n')
      expect((await run('--rw', '.', ...write)).status).toBe(0)
      expect(await readFile(join(cwd, 'deploy/key'), 'utf8')).toBe('new\n')
    })

    test('--credential shows a file where it is said', async () => {
      const { cwd, run } = await placeOf(as)
      await writeFile(join(cwd, 'token'), 'hunter2\n')
      await chmod(join(cwd, 'token'), 0o644)
      const shown = await run(
        '--credential',
        './token:~/.config/token',
        '-c',
        'cat ~/.config/token; echo x >~/.config/token',
      )
      expect(shown).toMatchObject({ out: 'hunter2\n' })
      expect(shown.status).not.toBe(0)
    })

    test('--add-host says where a name leads', async () => {
      const { run } = await placeOf(as)
      const options = ['--allow-host', 'db.test', '--add-host', 'db.test=192.0.2.7', '--proxy', 'off']
      const { out } = await run(...options, '--plan=json', '--', 'true')
      expect(JSON.parse(out)).toMatchObject({ network: { hosts: { 'db.test': '192.0.2.7' }, proxy: 'off' } })
    })

    test('--add-header wants TLS to end here, and its secret is in no plan', async () => {
      const { cwd } = await placeOf(as)
      const options = ['--allow-host', 'api.test', '--add-header', 'api.test/Authorization=Bearer {env:TOKEN}']
      const run = (...more: readonly string[]) =>
        runForText([...options, ...more, '--plan=json', '--', 'true'], { as, cwd, env: { TOKEN: 'hunter2' } })
      expect(await run()).toMatchObject({ status: 125, err: expect.stringContaining('--terminate-tls') })
      const { out } = await run('--terminate-tls')
      expect(JSON.parse(out)).toMatchObject({
        network: {
          credentials: [{ host: 'api.test', header: 'Authorization', from: 'env:TOKEN', format: 'Bearer {}' }],
        },
      })
      expect(out).not.toContain('hunter2')
    })

    test('--read-bps and --write-iops are held or refused, never dropped', async () => {
      const { run } = await placeOf(as)
      const { status, out, err } = await run('--read-bps', '20m', '--write-iops', '100', '--plan=json', '--', 'true')
      if (status === 0) expect(JSON.parse(out)).toMatchObject({ limits: { io: { readBps: 20971520, writeIops: 100 } } })
      else expect({ status, err }).toEqual({ status: 125, err: expect.stringContaining('io-limit') })
    })
  })
})
