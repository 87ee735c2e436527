/** A hundred thousand changes: listed in bounded form, applied and undone whole. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { describeWith } from '../support/needs.ts'
import { currentUser } from '../support/users.ts'
import { makePlace, treeOf } from './place.ts'

const MANY = 100_000
const SCRIPT = `rm kept; i=0; while [ $i -lt 100 ]; do mkdir $i; (cd $i; seq ${MANY / 100} | xargs touch); i=$((i + 1)); done`

describeWith('bwrap', 'a hundred thousand changes', () => {
  test('are listed, applied and undone', { timeout: 280_000 }, async () => {
    const place = await makePlace(currentUser())
    writeFileSync(join(place.project, 'kept'), 'kept\n')
    const before = treeOf(place.project)
    const { cow, changes } = await place.run(SCRIPT, '--timeout', '2m')
    const id = cow?.id ?? ''
    expect(cow?.counts).toEqual({ added: MANY + 100, deleted: 1 })
    // Deletions are never cut.
    expect([changes?.length, cow?.omitted]).toEqual([1001, MANY + 100 - 1000])
    expect(changes?.filter(({ kind }) => kind === 'deleted').map(({ path }) => path)).toEqual(['kept'])
    expect(await place.changes(id)).toHaveLength(MANY + 101)
    expect((await place.cli('apply', id)).stderr.toString()).toMatch(new RegExp(`^llm-do: ${MANY + 101} applied; `))
    expect(treeOf(place.project)).toHaveLength(MANY + 100)
    expect((await place.cli('undo', id)).status).toBe(0)
    expect(treeOf(place.project)).toEqual(before)
  })
})
