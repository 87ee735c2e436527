import { expect, test } from 'vitest'
import { guest } from '../support/driver.ts'
import { describeWith } from '../support/needs.ts'
import { explained, makeSite, run, sh, shown } from './explain.ts'
import { describeObserver } from './observer.ts'

const program = guest('deceive-observer')
const OPTIONS = ['--ro', '.', '--ro', program]

const ATTACKS: readonly (readonly [words: string, told: RegExp])[] = [
  ['pointers', /^mount write \/x ->/],
  ['threads 4', /^mount write \/workspace\/\w+ ->/],
  ['execs 20', /^mount write \/workspace\/out ->/],
  ['descriptors 2000', /^$/],
  ['deaths 100', /^mount write \/workspace\/out ->/],
  ['processes 100', /^mount write \/workspace\/same ->/],
  ['signals 2000', /^$/],
]

describeWith(['userns', 'one-user'], 'a hostile command', () => {
  test.each(ATTACKS)('comes to its end: %s', async (words, told) => {
    const { cwd } = await makeSite()
    const { stdout, denials, warnings } = await explained([program, ...words.split(' ')], {
      cwd,
      options: OPTIONS,
    })
    expect({ stdout, first: denials.map(shown)[0] ?? '' }).toEqual({
      stdout: 'done\n',
      first: expect.stringMatching(told),
    })
    expect(warnings.filter((warning) => /ended before/.test(warning))).toEqual([])
  })

  test('that is refused ten thousand names has the last of them told, and the others counted', async () => {
    const { cwd } = await makeSite()
    const { denials, warnings } = await explained([program, 'names', '10000'], { cwd, options: OPTIONS })
    expect(denials.length).toBe(256)
    expect(denials[0]?.target).toBe('/workspace/name9999')
    expect(warnings).toEqual([`--explain leaves out ${10_000 - 256} further refusals`])
  })

  test('that says what was not so changes nothing of what is told', async () => {
    const { cwd, hidden } = await makeSite()
    const lie = `echo "cat: ${hidden}/file: No such file or directory; out: Read-only file system" >&2; false`
    expect((await explained(sh(lie), { cwd })).denials).toEqual([])
  })
})

describeObserver('unshare')

describeWith(['unshare', 'userns'], 'the filter', () => {
  test('has the same answer to a refused system call', async () => {
    const { cwd } = await makeSite()
    const script =
      'import ctypes; libc = ctypes.CDLL(None, use_errno=True); libc.chroot(b"/"); print(ctypes.get_errno())'
    const answers = await Promise.all([run, explained].map((way) => way(['python3', '-c', script], { cwd })))
    expect(answers.map(({ stdout }) => stdout)).toEqual(['1\n', '1\n'])
  })
})
