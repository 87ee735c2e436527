/** Follows the recipes of docs/guide/recipes.md as they stand, in a directory with the files that a reader has. */
import { readFileSync } from 'node:fs'
import { symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { follow, newSite, type RunOptions, runScript, type Site, writeFiles } from './cli/follow-instructions.ts'
import { readInstructions } from './cli/page.ts'
import { publish } from './network/registry.ts'
import { findProgram, makePythonPackage, UNPACKED } from './network/services.ts'
import { openTerminationWorld, SECRET } from './network/termination-world.ts'
import { openWorld, WORLD, type World } from './network/world.ts'
import type { Files } from './real/directory.ts'
import { describeWith, type Need, testWith } from './support/needs.ts'
import { checkoutFor, currentUser } from './support/users.ts'

export const RECIPES = readInstructions(readFileSync(join(import.meta.dirname, '../docs/guide/recipes.md'), 'utf8'))
const MODULES = join(checkoutFor(currentUser()), 'node_modules')

interface Row {
  readonly title: string
  /** Only in `make test-all`: it needs a browser, or takes as long as twenty other tests. */
  readonly isDeep?: true
  readonly needs?: readonly Need[]
  readonly files?: Files
  /** Other files and variables of the reader. */
  readonly prepare?: (site: Site) => Promise<RunOptions | undefined>
  /** Output of the recipe. */
  readonly shows: string | RegExp
  /** Of stderr; nothing by default. */
  readonly says?: RegExp
  /** A script of the reader afterwards, and what it prints. */
  readonly leaves?: readonly [script: string, shows: string]
}

/** The whole of this checkout's packages is too large to be copied: it is shown at its own place. */
async function linked({ work }: Site): Promise<RunOptions> {
  await symlink(MODULES, join(work, 'node_modules'))
  return { env: { LLM_DO_EXEC_RO: MODULES } }
}

/** A client passes no LLM_DO_EXEC_* on, but the home. */
async function linkedByProfile(site: Site): Promise<undefined> {
  await linked(site)
  const profile = `sandbox: { extends: mcp, zones: [{ hostPath: ${MODULES} }] }\n`
  await writeFiles({ '~/.config/llm-do/profiles/mcp.yaml': profile }, site)
}

/** A registry in a network of the test's own, which is the one that npm or pip are set up for. */
async function inWorld(prepare: (world: World) => Promise<Readonly<Record<string, string>>>): Promise<RunOptions> {
  const world = await openWorld({ 'registry.test': [[WORLD]] })
  onTestFinished(() => world.close())
  const variables = await prepare(world)
  return {
    through: world.through,
    env: { ...variables, LLM_DO_EXEC_ENV: Object.keys(variables).join('\n') },
  }
}

async function postgres(site: Site): Promise<RunOptions> {
  const directory = join(await findProgram('usr/lib/postgresql', '*/bin/initdb'), '..')
  await writeFiles({ '~/bin/pg_config': `#!/bin/sh\necho ${directory}\n` }, site)
  return directory.startsWith(UNPACKED) ? { env: { LLM_DO_EXEC_RO: UNPACKED } } : {}
}

async function repository(site: Site): Promise<undefined> {
  await runScript('git init -q; git add .; git commit -qm Begin', site)
  await writeFiles({ poem: 'one\ntwo\n' }, site)
}

/** Where a token is asked for: without one, git and the API are refused. */
async function gitHub(site: Site): Promise<RunOptions> {
  const hosts = ['github.com', 'api.github.com']
  const { world, directory, close } = await openTerminationWorld({
    program: 'github-server.mjs',
    ports: { 443: hosts },
  })
  onTestFinished(close)
  const { through } = world
  await runScript(`git init -q --bare ${directory}/web/ann/poems.git`, site)
  await runScript('git init -q -b main; git add .; git commit -qm Begin', site)
  await runScript('git remote add origin https://github.com/ann/poems.git', site)
  const refused = await runScript(`curl -sSo /dev/null -w '%{http_code} ' https://{${hosts}}/user`, site, { through })
  expect(refused).toEqual({ status: 0, out: '401 401 ', err: '' })
  const gh = await findProgram('usr/bin', 'gh')
  const unpacked = { LLM_DO_EXEC_RO: UNPACKED, LLM_DO_EXEC_ENV: `PATH=${dirname(gh)}:/usr/bin:/bin` }
  return { through, env: { TOKEN: SECRET, ...(gh.startsWith(UNPACKED) ? unpacked : {}) } }
}

/** Layers of root are not below its home: those of this directory only. */
const LAYER = `$(llm-do ps --cow | awk -v here="$PWD" 'index($4, here) == 1 { print $1 }')`

export const ROWS: readonly Row[] = [
  {
    title: 'My tests',
    needs: ['pytest'],
    files: {
      'package.json': '{ "scripts": { "test": "vitest run --no-color" } }',
      'sum.test.js': `import { expect, test } from 'vitest'\ntest('sum', () => expect(1 + 1).toBe(2))\n`,
      'test_sum.py': 'def test_sum():\n    assert 1 + 1 == 2\n',
    },
    prepare: linked,
    shows: /Tests {2}1 passed[\s\S]*1 passed in/,
  },
  {
    title: 'npm install',
    needs: ['root'],
    files: { 'package.json': '{ "dependencies": { "gray-matter": "*" } }' },
    prepare: () =>
      inWorld(async ({ files }) => {
        await publish('gray-matter', { web: files, host: 'registry.test' })
        return { npm_config_registry: 'http://registry.test/npm/' }
      }),
    shows: /added \d+ packages/,
    leaves: [`node -p "require('gray-matter')('---\\na: 1\\n---').data.a"`, '1'],
  },
  {
    title: 'A Python virtual environment',
    // Its network is that of `npm install`: tests/network/tools has the hosts of @pip.
    isDeep: true,
    needs: ['root', 'python'],
    files: { 'requirements.txt': 'tiny\n', 'app.py': 'import tiny\nprint(tiny.said)\n' },
    prepare: () =>
      inWorld(async ({ files }) => {
        await makePythonPackage(files)
        const pip = { PIP_INDEX_URL: 'http://registry.test/pip/', PIP_TRUSTED_HOST: 'registry.test' }
        return { ...pip, PIP_DISABLE_PIP_VERSION_CHECK: '1' }
      }),
    shows: 'from=tiny',
    leaves: ['.venv/bin/python app.py', 'from=tiny'],
  },
  {
    title: 'A headless browser',
    isDeep: true,
    needs: ['chromium'],
    files: { 'page.html': '<p></p><script>document.querySelector("p").textContent = 6 * 7</script>' },
    shows: /<p>42<\/p>/,
    says: /(?:)/,
  },
  {
    title: 'Browser tests with Playwright',
    isDeep: true,
    needs: ['chromium'],
    prepare: linked,
    shows: 'Hello',
  },
  {
    title: 'A database for one run',
    needs: ['postgres'],
    prepare: postgres,
    shows: '42',
    leaves: ['test -s db/data/PG_VERSION', ''],
  },
  {
    title: 'A git commit',
    needs: ['git'],
    files: { poem: 'one\n', '~/.gitconfig': '[user]\n\tname = Ann\n\temail = ann@example.org\n' },
    prepare: repository,
    shows: '',
    leaves: ['git log -1 --format=%an:%s', 'Ann:Add a line'],
  },
  {
    title: 'GitHub without the token inside',
    needs: ['root', 'git', 'gh'],
    files: { poem: 'one\n', '~/.gitconfig': '[user]\n\tname = Ann\n\temail = ann@example.org\n' },
    prepare: gitHub,
    shows: 'ann',
    leaves: ['git log --format=%s origin/main', 'Begin'],
  },
  {
    title: 'An MCP server',
    files: { 'notes.txt': 'a note' },
    prepare: linkedByProfile,
    shows: "a note\nENOENT: no such file or directory, open '/etc/shadow'",
  },
  {
    title: 'A coding agent',
    files: { agent: '#!/bin/sh\necho "$API_KEY" > ~/kept\necho new > file\n', file: 'old\n' },
    prepare: async () => ({ env: { API_KEY: 'key' } }),
    shows: /^-old\n\+new$/m,
    says: /^llm-do: 1 changed: llm-do diff \w+$/,
    leaves: [
      `id=${LAYER}; { llm-do apply $id; llm-do discard $id; } >/dev/null 2>&1; cat file ~/agent-home/kept`,
      'new\nkey',
    ],
  },
]

const like = (text: string | RegExp): unknown => (typeof text === 'string' ? text : expect.stringMatching(text))

export function describeRecipes(rows: readonly Row[]): void {
  describeWith('userns', 'a recipe does what it says', () => {
    for (const { title, needs = [], files = {}, prepare, shows, says = '', leaves } of rows)
      testWith(needs, title, async () => {
        const site = await newSite()
        await writeFiles(files, site)
        const options = (await prepare?.(site)) ?? {}
        const recipe = RECIPES.find((each) => each.title === title)
        if (recipe === undefined) throw new Error(`no recipe ${title}`)
        expect(await follow(recipe, site, options)).toEqual({ status: 0, out: like(shows), err: like(says) })
        if (leaves === undefined) return
        const [script, printed] = leaves
        expect(await runScript(script, site)).toEqual({ status: 0, out: printed, err: '' })
      })
  })
}
