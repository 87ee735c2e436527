/** The lines of docs/guide/hooks.md do what the page says, with the client played where it cannot be had. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { follow, newSite, runScript, type Site, writeFiles } from './cli/follow-instructions.ts'
import { type Instructions, readInstructions } from './cli/page.ts'
import type { Files, TextRun } from './real/directory.ts'
import { describeWith, type Need, testWith } from './support/needs.ts'

const PAGES = join(import.meta.dirname, '../docs/guide')
const instructionsOf = (page: string): readonly Instructions[] =>
  readInstructions(readFileSync(join(PAGES, page), 'utf8'))

const HOOKS = instructionsOf('hooks.md')

function section(title: string, sections = HOOKS): Instructions {
  const found = sections.find((each) => each.title === title)
  if (found === undefined) throw new Error(`no section ${title}`)
  return found
}

const MODEL = 'Claude Code and Codex: the commands of the model'
const PREFIX = 'Claude Code: all that it starts'
const SERVERS = 'MCP servers of clients'

/** Shell words in single quotes, as clients write them. */
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

/** A command with quotes, a variable and bash's own syntax; it tells where it runs, what it may change and what it cannot see. */
const COMMAND = `[[ -n "$LLM_DO_SANDBOX" ]] && echo "it's inside" $PWD > made && cat made; cat /etc/shadow 2>/dev/null || echo no shadow`
const printedIn = ({ work }: Site): string => `it's inside ${work}\nno shadow`

describeWith(['bwrap', 'userns'], 'the hook for commands of the model', () => {
  interface Settings {
    readonly hooks: { readonly PreToolUse: readonly { readonly hooks: readonly { readonly command: string }[] }[] }
  }
  const { files } = section(MODEL)
  const { hooks } = JSON.parse(files['~/.claude/settings.json'] ?? '') as Settings
  const entry = hooks.PreToolUse[0]?.hooks[0]?.command ?? ''

  /** Acts as the client: sh starts the entry with the call on stdin. */
  async function hooked(input: string, site: Site): Promise<TextRun> {
    await writeFiles(files, site)
    return runScript(`exec sh -c ${quoted(entry)}`, site, { input })
  }

  test('puts each command into the sandbox, and leaves the rest of the call as it was', async () => {
    const site = await newSite()
    const tool_input = { command: COMMAND, description: 'Look', timeout: 5000, run_in_background: false }
    const call = { hook_event_name: 'PreToolUse', tool_name: 'Bash', tool_input, cwd: site.work }
    const { status, out, err } = await hooked(JSON.stringify(call), site)
    expect([status, err]).toEqual([0, ''])
    const answer = JSON.parse(out) as { hookSpecificOutput: { updatedInput: typeof tool_input } }
    const command = expect.stringMatching(/^llm-do-exec /)
    const updatedInput = { ...tool_input, command }
    expect(answer).toEqual({
      hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision: 'allow', updatedInput },
    })
    const ran = await runScript(answer.hookSpecificOutput.updatedInput.command, site)
    expect(ran).toEqual({ status: 0, out: printedIn(site), err: '' })
  })

  test.each([
    ['is no JSON', 'no call'],
    ['has no command', '{"tool_name":"Bash","tool_input":{}}'],
  ])('blocks a call that %s', async (_, input) => {
    expect(await hooked(input, await newSite())).toMatchObject({ status: 2, out: '' })
  })

  test('blocks every call where node is not there', async () => {
    const site = await newSite()
    await writeFiles({ '~/bin/node': '#!/bin/sh\nexit 127\n' }, site)
    expect(await hooked('{}', site)).toMatchObject({ status: 2, out: '' })
  })
})

describeWith(['bwrap', 'userns'], 'the prefix of commands', () => {
  test('runs what it is given as one word, as Claude Code gives it', async () => {
    const site = await newSite()
    await writeFiles({ ...section(PREFIX).files, '~/.profile': `PATH=${site.env['PATH']}\n` }, site)
    const settings = JSON.parse(section(PREFIX).files['~/.claude/settings.json'] ?? '') as { env: object }
    expect(settings.env).toEqual({ CLAUDE_CODE_SHELL_PREFIX: '/home/you/bin/sandboxed' })
    const snapshot = 'source ~/.claude/shell-snapshots/snapshot-bash-1.sh 2>/dev/null || true'
    const whole = `${snapshot} && eval ${quoted(COMMAND)} < /dev/null && pwd -P >| /tmp/claude-1-cwd`
    const ran = await runScript(`exec bash -c -l ${quoted(`'${site.home}/bin/sandboxed' ${quoted(whole)}`)}`, site)
    expect(ran).toEqual({ status: 0, out: printedIn(site), err: '' })
  })
})

test('the entries of MCP clients start what the recipe starts', () => {
  const tried = JSON.parse(section('An MCP server', instructionsOf('recipes.md')).files['.mcp.json'] ?? '') as object
  const [forMost = '', forCode = '', forCodex = ''] = section(SERVERS).shown
  expect(JSON.parse(forMost)).toEqual(tried)
  expect({ mcpServers: (JSON.parse(forCode) as { servers: object }).servers }).toEqual(tried)
  const values = [...forCodex.matchAll(/^(\w+) = (.*)$/gm)].map(([, key, value = '']) => [key, JSON.parse(value)])
  expect({ mcpServers: { notes: Object.fromEntries(values) } }).toEqual(tried)
})

interface Row {
  readonly title: string
  readonly needs?: readonly Need[]
  readonly files: Files
  readonly shows: string
  readonly leaves?: readonly [script: string, shows: string]
}

/** The sections that are scripts. */
const ROWS: readonly Row[] = [
  { title: 'What starts $SHELL', files: {}, shows: 'in namespace' },
  {
    title: 'npm scripts',
    files: { 'package.json': JSON.stringify({ scripts: { where: 'echo "in $LLM_DO_SANDBOX" | tee made' } }) },
    shows: 'in namespace',
    leaves: ['cat made', 'in namespace'],
  },
  {
    title: 'make',
    needs: ['gcc'],
    files: { Makefile: 'made: $(shell echo start)\n\t@echo "in $$LLM_DO_SANDBOX" > $@; cat $@\nstart:\n' },
    shows: 'in namespace',
    leaves: ['cat made', 'in namespace'],
  },
  {
    title: 'git hooks',
    needs: ['git'],
    files: {
      '~/.gitconfig': '[user]\n\tname = Ann\n\temail = ann@example.org\n',
      Makefile: 'check:\n\t@test -n "$$LLM_DO_SANDBOX" && echo checked; test ! -e fails\n',
    },
    shows: '',
    leaves: [
      'git log --format=%s; touch fails; git commit -q --allow-empty -m Not || git log --format=%s',
      'Begin\nBegin',
    ],
  },
]

describeWith(['bwrap', 'userns'], 'a script of the page does what it says', () => {
  for (const { title, needs = [], files, shows, leaves } of ROWS)
    testWith(needs, title, async () => {
      const site = await newSite()
      await writeFiles(files, site)
      if (title === 'git hooks') await runScript('git init -q; git add .', site)
      expect(await follow(section(title), site)).toEqual({ status: 0, out: shows, err: expect.any(String) })
      if (leaves === undefined) return
      const [script, printed] = leaves
      expect(await runScript(script, site)).toMatchObject({ status: 0, out: printed })
    })
})

test('every section is tried', () => {
  expect(HOOKS.map(({ title }) => title).toSorted()).toEqual(
    [MODEL, PREFIX, SERVERS, ...ROWS.map(({ title }) => title)].toSorted(),
  )
})
