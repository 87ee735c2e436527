/** A coding session as it happens: nothing of it reaches the host until it is applied, and then all of it does, as if it had run there. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { describe, expect, test } from 'vitest'
import { programFor } from '../support/cli.ts'
import { callers, uidOf } from '../support/users.ts'
import { inodesOf, makePlace, type Place, treeOf } from './place.ts'

const FILES = 2000

/** Commits have the same names in both runs. */
const IDENTITY = ['GIT_AUTHOR', 'GIT_COMMITTER'].map(
  (who) => `export ${who}_NAME=A ${who}_EMAIL=a@example.org ${who}_DATE='2001-02-03T04:05:06Z'`,
)

const SESSION = `
set -e
${IDENTITY.join('\n')}
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
git checkout -q -b topic
echo '// topic' >> src/main.c; git commit -qam topic
git checkout -q main; echo more >> README; git commit -qam main
git checkout -q topic; git rebase -q main
gcc -O1 -o app src/main.c; ./app > answer
/usr/bin/python3 -c 'import json; json.dump({"a": [1, 2]}, open("made.json", "w"))'
node -e 'require("fs").writeFileSync("made.js", "1")'
npm ci --offline --no-audit --no-fund --cache /tmp/npm
node /tools/node_modules/typescript/bin/tsc --strict --types --outDir made src/sum.ts
node /tools/node_modules/vitest/vitest.mjs run --root . --globals --no-color src/sum.spec.mjs; rm -rf node_modules/.vite
PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -m pytest -q -p no:cacheprovider test_sum.py
sed -i 's/old/new/' many/*
mkdir -p build/a/b; cp -r src build/a/b; rm -r build/a/b/src; mv docs guide
printf x > "$(printf 'with\\nnewline')"; printf x > "$(printf 'not-utf8-\\377')"
ln -s guide link; chmod 700 tool; find many -name '*7' -delete; git add -A; git commit -qm all
`

/** A package from a file, so that `npm ci` needs no network. */
async function addDependency(project: string): Promise<void> {
  const vendor = join(project, 'vendor')
  mkdirSync(join(vendor, 'dependency'), { recursive: true })
  const manifest = { name: 'dependency', version: '1.0.0', bin: { dependency: 'index.js' } }
  writeFileSync(join(vendor, 'dependency/package.json'), JSON.stringify(manifest))
  writeFileSync(join(vendor, 'dependency/index.js'), '#!/usr/bin/env node\nmodule.exports = 1\n')
  await execa('npm', ['pack', './dependency'], { cwd: vendor })
  const own = { name: 'project', version: '1.0.0', dependencies: { dependency: 'file:vendor/dependency-1.0.0.tgz' } }
  writeFileSync(join(project, 'package.json'), JSON.stringify(own))
  writeFileSync(join(project, '.gitignore'), 'node_modules\n')
  await execa('npm', ['install', '--offline', '--package-lock-only', '--no-audit'], { cwd: project })
}

async function fill({ project, user }: Place): Promise<void> {
  for (const name of ['src', 'many', 'docs', 'docs/deep']) mkdirSync(join(project, name))
  writeFileSync(join(project, 'src/main.c'), '#include <stdio.h>\nint main(void) { return puts("answer") < 0; }\n')
  writeFileSync(join(project, 'src/sum.ts'), 'export const sum = (a: number, b: number): number => a + b\n')
  const spec = "import { sum } from './sum.ts'\ntest('sum', () => expect(sum(1, 2)).toBe(3))\n"
  writeFileSync(join(project, 'src/sum.spec.mjs'), spec)
  writeFileSync(join(project, 'test_sum.py'), 'def test_sum():\n    assert sum([1, 2]) == 3\n')
  await addDependency(project)
  for (const name of ['README', 'docs/one', 'docs/deep/two', 'tool']) writeFileSync(join(project, name), `${name}\n`)
  for (let at = 0; at < FILES; at += 1) writeFileSync(join(project, `many/${at}`), `old ${at}\n`)
  const git = `${IDENTITY.join('; ')}; git init -q -b main . && git add -A && git commit -qm first`
  // The directory may be another user's already.
  const env = { GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: 'safe.directory', GIT_CONFIG_VALUE_0: '*' }
  await execa('sh', ['-c', git], { cwd: project, env })
  if (user === 'plain') await execa('chown', ['-R', `${uidOf('plain')}:${uidOf('plain')}`, project])
}

/** The index has times and inodes in it. Directories have the time of their last entry. */
const lasting = (directory: string): readonly string[] =>
  treeOf(directory, { times: false }).filter((line) => !line.startsWith('.git/index '))

describe.each(callers())('as %s', (user) => {
  describe('a coding session', () => {
    test('changes nothing of the host, and all of it when it is applied', { timeout: 200_000 }, async () => {
      const place = await makePlace(user)
      const twin = await makePlace(user)
      await fill(place)
      await cp(place.project, twin.project, { recursive: true, preserveTimestamps: true, verbatimSymlinks: true })
      if (user === 'plain') await execa('chown', ['-R', `${uidOf('plain')}:${uidOf('plain')}`, twin.project])
      const before = [treeOf(place.project), inodesOf(place.project)]
      const tools = join(programFor(user, 'llm-do'), '../../node_modules')
      const more = ['--timeout', '2m', '--ro', `${tools}:/tools/node_modules`]
      const { cow, stderr, exitCode } = await place.run(SESSION, ...more)
      expect([exitCode, stderr]).toEqual([0, ''])
      expect([treeOf(place.project), inodesOf(place.project)]).toEqual(before)
      const direct = await twin.cli('exec', '--rw', '.', ...more, '--', 'sh', '-c', SESSION)
      expect([direct.status, direct.stderr.toString()]).toEqual([0, ''])
      const applied = await place.cli('apply', cow?.id ?? '')
      expect([applied.status, applied.stderr.toString()]).toEqual([0, expect.stringMatching(/^llm-do: \d+ applied; /)])
      expect(lasting(place.project)).toEqual(lasting(twin.project))
      expect(await place.changes(cow?.id ?? '')).toEqual([])
      expect((await place.cli('undo', cow?.id ?? '')).status).toBe(0)
      expect(treeOf(place.project)).toEqual(before[0])
    })
  })
})
