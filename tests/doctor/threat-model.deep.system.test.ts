/**
 * The table of docs/internals/threat-model.md against this machine. LLM_DO_GOLDEN=write, as root, makes it again.
 * Another kernel may hold more or less; on the one that the page names, each cell is compared.
 */

import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { release } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { RowResult } from '../../src/doctor/self-test.ts'
import { runCli } from '../support/cli.ts'
import { isWritingGoldens } from '../support/golden.ts'
import { describeWith, lacksForeignCalls } from '../support/needs.ts'
import { currentUser, type User } from '../support/users.ts'

const FILE = join(import.meta.dirname, '../../docs/internals/threat-model.md')
const [BEGIN, END] = ['<!-- made by tests/doctor/threat-model.deep.system.test.ts -->', '<!-- end -->']

async function selfTestAs(user: User): Promise<readonly RowResult[]> {
  const { stdout, stderr } = await runCli(['doctor', '--self-test', '--json'], { as: user, program: 'llm-do' })
  if (stdout.length === 0) throw new Error(stderr.toString())
  return (JSON.parse(stdout.toString()) as { rows: readonly RowResult[] }).rows
}

const WORDS = { holds: 'holds', broken: 'FAILS', cannot: 'cannot' } as const

function tableOf(columns: readonly { readonly user: User; readonly rows: readonly RowResult[] }[]): string {
  const cells = columns.flatMap(({ user, rows }) =>
    [...new Set(rows.map(({ engine }) => engine))].map((engine) => ({
      title: `${engine}, ${user}`,
      rows: new Map(rows.filter((row) => row.engine === engine).map((row) => [row.id, row])),
    })),
  )
  const ids = [...(cells[0]?.rows.values() ?? [])]
  const lines = ids.map(({ id, sentence }) => {
    const verdicts = cells.map(({ rows }) => WORDS[rows.get(id)?.verdict.kind ?? 'broken'])
    return `| ${id} | ${sentence} | ${verdicts.join(' | ')} |`
  })
  const reasons = new Map(
    cells.flatMap(({ rows }) =>
      [...rows.values()].flatMap(({ id, verdict }) => (verdict.kind === 'holds' ? [] : [[id, verdict.why] as const])),
    ),
  )
  const bwrap = execFileSync('bwrap', ['--version'], { encoding: 'utf8' }).trim()
  return [
    BEGIN,
    '',
    `Linux ${release().split('-')[0]}, ${bwrap}, ${process.arch}.`,
    '',
    `| row | sentence | ${cells.map(({ title }) => title).join(' | ')} |`,
    `|---|---|${cells.map(() => '---|').join('')}`,
    ...lines,
    '',
    ...[...reasons].map(([id, why]) => `* ${id}: ${why}.`),
    '',
    END,
  ].join('\n')
}

const rowsOf = (text: string): readonly string[] => text.match(/^\| \w+\.[\w-]+ \|.*$/gm) ?? []
const idOf = (row: string): string => row.split(' ')[1] ?? ''
/** A kernel of the same version can have been built, or started, without those. */
const isComparable = (row: string): boolean => idOf(row) !== 'syscalls.foreign' || lacksForeignCalls() === undefined
/** Of the line below the mark: major and minor version. */
const kernelOf = (text: string): string => /^Linux (\d+\.\d+)/m.exec(text)?.[1] ?? ''

describeWith(['root', 'plain-user', 'bwrap', 'unshare', 'userns'], 'the threat model', () => {
  test('its table is what this machine shows, as root and as a plain user', { timeout: 600_000 }, async () => {
    const columns = [
      { user: currentUser(), rows: await selfTestAs('root') },
      { user: 'plain' as const, rows: await selfTestAs('plain') },
    ]
    const text = readFileSync(FILE, 'utf8')
    if (isWritingGoldens()) {
      const [before = '', rest = ''] = text.split(BEGIN)
      writeFileSync(FILE, `${before}${tableOf(columns)}${rest.split(END)[1] ?? '\n'}`)
    }
    const failed = columns.flatMap(({ user, rows }) =>
      rows.filter(({ verdict }) => verdict.kind === 'broken').map((row) => ({ user, ...row })),
    )
    expect(failed).toEqual([])
    const here = tableOf(columns)
    const written = readFileSync(FILE, 'utf8')
    expect(rowsOf(written).map(idOf)).toEqual(rowsOf(here).map(idOf))
    // Another kernel may hold more or less: there the page can only be compared by its rows.
    if (kernelOf(written) === kernelOf(here))
      expect(rowsOf(written).filter(isComparable)).toEqual(rowsOf(here).filter(isComparable))
  })
})
