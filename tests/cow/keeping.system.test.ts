/** How a layer is kept: gone on with, bounded, asked about, and left for a while. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Result } from '../../src/report/result.ts'
import { until } from '../pool/pool.ts'
import { currentUser } from '../support/users.ts'
import { makePlace, type Place, treeOf } from './place.ts'

/** Without `--cow`: the directories are those of the layer. */
async function goOn(place: Place, id: string, script: string): Promise<Result> {
  const { stdout } = await place.cli('exec', '--json', '--cow-continue', id, '--', 'sh', '-c', script)
  return JSON.parse(stdout.toString()) as Result
}

const user = currentUser()

describe(`as ${user}`, () => {
  describe('a layer', () => {
    test('is gone on with: the next command sees what the last one has left, and adds to it', async () => {
      const place = await makePlace(user, 'd/ file d/one')
      const before = treeOf(place.project)
      const { cow } = await place.run('echo more >> file; rm d/one; echo x > d/x')
      const id = cow?.id ?? ''
      const second = await goOn(place, id, 'cat file; ls d; rm d/x; echo y > d/y')
      expect([second.stdout, second.cow?.id]).toEqual(['file\nmore\nx\n', id])
      expect(second.changes?.map(({ path, kind }) => `${kind} ${path}`)).toEqual([
        'deleted d/one',
        'added d/y',
        'modified file',
      ])
      expect(treeOf(place.project)).toEqual(before)
      // One that changed nothing, and one that could not be started, leave it as it is.
      expect((await goOn(place, id, 'true')).changes).toHaveLength(3)
      await place.cli('exec', '--cow-continue', id, '--', 'no-such-program')
      expect(await place.changes(id)).toHaveLength(3)
      // After an apply, too.
      expect((await place.cli('apply', id)).status).toBe(0)
      expect((await goOn(place, id, 'cat file; echo third >> file')).stdout).toBe('file\nmore\n')
      expect((await place.cli('apply', id)).status).toBe(0)
      expect(readFileSync(join(place.project, 'file'), 'utf8')).toBe('file\nmore\nthird\n')
    })

    test('of other directories than those of the run is not gone on with', async () => {
      const place = await makePlace(user, 'd/ file d/one')
      const { cow } = await place.run('echo x > x')
      const id = cow?.id ?? ''
      const { status, stderr } = await place.cli('exec', '--cow-continue', id, '--cow', place.outside, '--', 'true')
      expect([status, stderr.toString()]).toEqual([125, expect.stringContaining('other copy-on-write directories')])
      expect(await place.changes(id)).toMatchObject([{ path: 'x' }])
      expect((await place.cli('exec', '--cow-continue', 'nosuchrun', '--', 'true')).status).toBe(125)
    })

    test('that takes more than its size, in a directory of no mode, ends the run, and the result says so', async () => {
      const place = await makePlace(user)
      const fillUp =
        'trap "echo x > late" TERM; mkdir h; dd if=/dev/zero of=h/big bs=1M count=8 2>/dev/null; chmod 0 h; sleep infinity'
      const over = await place.run(fillUp, '--cow-size', '2m')
      expect([over.reason, over.ok]).toEqual(['disk', false])
      expect(over.message).toContain('took more than 2MiB')
      // It gets no moment to write more.
      expect(over.changes?.map(({ path }) => path)).not.toContain('late')
      // A process that ended before the check is a failure, too.
      const words = ['--cow', '.', '--cow-size', '2m', '--', 'dd', 'if=/dev/zero', 'of=big', 'bs=8M', 'count=1']
      expect((await place.cli('exec', ...words)).status).toBe(137)
      // In memory the limit of the command's memory counts, also for what has no name any more.
      const unlinked = 'exec 3> x; rm x; dd if=/dev/zero bs=1M count=200 >&3 2>/dev/null; sleep infinity'
      const inMemory = await place.run(unlinked, '--cow-upper', 'memory', '--memory', '64m')
      expect([inMemory.reason, inMemory.message]).toEqual(['disk', expect.stringContaining('took more than 64MiB')])
      // Without a word of the caller there is a limit, too.
      expect((await place.cli('exec', '--plan', '--json', '--cow', '.', '--', 'true')).stdout.toString()).toMatch(
        /"size": ?1073741824/,
      )
      // Control: with room for it the same is an ordinary end.
      const under = await place.run('dd if=/dev/zero of=big bs=1M count=1 2>/dev/null', '--cow-size', '4m')
      expect([under.reason, under.ok]).toEqual(['exit', true])
    })

    test('of any depth does not end the launcher', async () => {
      const place = await makePlace(user)
      const deepen = 'import os\nfor level in range(1200): os.path.exists("a") or os.mkdir("a"); os.chdir("a")\n'
      execFileSync('python3', ['-c', deepen], { cwd: place.project })
      // As much stack as 30,000 levels would need of the usual one. The file that is gone again leaves all levels in
      // the layer, and what is too deep to be compared counts as a change.
      const words = ['exec', '--json', '--cow', '.', '--', 'python3', '-c', `${deepen}open("f", "w"); os.remove("f")`]
      const { stdout } = await place.cliThrough(['sh', '-c', 'ulimit -s 256; ulimit -n 8000; exec "$0" "$@"'], ...words)
      expect(JSON.parse(stdout.toString())).toMatchObject({
        reason: 'exit',
        exitCode: 0,
        cow: { id: expect.any(String) },
      })
    })

    test('is asked about at a terminal, and nowhere else', async () => {
      const place = await makePlace(user, 'd/ file d/one')
      const { status, stderr } = await place.cli(
        'exec',
        '--cow',
        '.',
        '--apply',
        'ask',
        '--json',
        '--',
        'touch',
        'never',
      )
      expect(`${status} ${stderr}`).toMatch(/^125/)
      const ask = (answer: string, script: string, ...options: readonly string[]) =>
        place.atTerminal(['exec', '--cow', '.', ...options, '--apply', 'ask', '--', 'sh', '-c', script], {
          steps: [
            { until: 'go on?', type: 'y\n' },
            { until: 'apply? [y/N]', type: answer },
          ].slice(script.includes('go on?') ? 0 : 1),
        })
      expect(await ask('\n', 'echo x > no')).toContain('apply? [y/N]')
      expect(existsSync(join(place.project, 'no'))).toBe(false)
      await ask('y\n', 'echo x > yes')
      expect(existsSync(join(place.project, 'yes'))).toBe(true)
      // An answer to the command is none to the question, and a sequence that the command leaves open does not hide it.
      const isTyped = "python3 -c 'import select; select.select([0], [], [])'"
      const screen = await ask('\n', `echo x > tricked; printf 'go on? '; ${isTyped}; printf '\\033]0;'`)
      expect(screen).toMatch(/\u001b\]0;\u0018.*apply\? \[y\/N\]/s)
      expect(existsSync(join(place.project, 'tricked'))).toBe(false)
      // Nobody is asked about changes that cannot be listed.
      const [begun, ended] = ['begun', 'ended'].map((name) => join(place.outside, name)) as [string, string]
      const script = `echo x > unseen; touch ${begun}; until [ -e ${ended} ]; do sleep 0.05; done`
      const running = ask('y\n', script, '--rw', place.outside)
      await until(async () => (existsSync(begun) ? true : undefined), 'the start of the command')
      renameSync(place.project, `${place.project}.was`)
      mkdirSync(place.project)
      writeFileSync(ended, '')
      const unlisted = await running
      rmSync(place.project, { recursive: true })
      renameSync(`${place.project}.was`, place.project)
      expect(unlisted).toContain('cannot be listed')
      expect([unlisted.includes('apply? [y/N]'), existsSync(join(place.project, 'unseen'))]).toEqual([false, false])
    })

    test('is removed by prune after as long as the policy says', async () => {
      const place = await makePlace(user)
      writeFileSync(join(place.outside, 'short.yaml'), 'sandbox:\n  cow: { keep: 2d }\n')
      const { cow } = await place.run('echo x > x', '--profile', join(place.outside, 'short.yaml'))
      // As if the two days were over.
      const record = join(place.layers, cow?.id ?? '', 'record')
      const bytes = readFileSync(record, 'latin1').replace(
        /keep\0\d+/,
        (text) => `keep\0${'1'.padStart(text.length - 5, '0')}`,
      )
      writeFileSync(record, bytes, 'latin1')
      const kept = (await place.run('echo x > x')).cow
      await place.cli('prune')
      expect((await place.cli('changes', cow?.id ?? '')).status).toBe(125)
      expect(await place.changes(kept?.id ?? '')).toHaveLength(1)
    })

    test('of an earlier boot is applied only by force', async () => {
      const place = await makePlace(user)
      const { cow } = await place.run('echo x > x')
      const id = cow?.id ?? ''
      const record = join(place.layers, id, 'record')
      const bytes = readFileSync(record, 'latin1').replace(
        /boot\0[0-9a-f-]+/,
        (text) => `boot\0${'0'.repeat(text.length - 5)}`,
      )
      writeFileSync(record, bytes, 'latin1')
      const { status, stderr } = await place.cli('apply', id)
      expect([status, stderr.toString()]).toEqual([125, expect.stringContaining('before the machine was started')])
      expect(existsSync(join(place.project, 'x'))).toBe(false)
      expect((await place.cli('apply', '--force', id)).status).toBe(0)
    })
  })
})
