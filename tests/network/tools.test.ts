import { describe, expect, test } from 'vitest'
import { hostsOf, undecided } from '../../src/network/tools/index.ts'
import type { Look } from '../../src/network/tools/look.ts'
import { TOOL_NAMES, type ToolName } from '../../src/network/tools/names.ts'
import { ruleOfScp, ruleOfUrl } from '../../src/network/tools/url.ts'

interface Host {
  readonly files?: Readonly<Record<string, string>>
  readonly variables?: Readonly<Record<string, string>>
  readonly answers?: Readonly<Record<string, string>>
  readonly programs?: Readonly<Record<string, string>>
  /** Of other users. */
  readonly foreign?: readonly string[]
}

function lookAt({ files = {}, variables = {}, answers = {}, programs = {}, foreign = [] }: Host): Look {
  const below = (directory: string) =>
    Object.keys(files).flatMap((file) => (file.startsWith(`${directory}/`) ? [file.slice(directory.length + 1)] : []))
  return {
    home: '/home/u',
    configHome: '/home/u/.config',
    cwd: '/code/project',
    variable: (name) => variables[name],
    text: (path) => files[path],
    projectText: (path) => files[path],
    names: (directory) => below(directory).filter((name) => !name.includes('/')),
    ownKind: (path) => {
      if (foreign.includes(path)) return undefined
      return path in files ? 'file' : below(path).length > 0 ? 'directory' : undefined
    },
    program: (name) => programs[name],
    ask: async (program) => answers[program],
  }
}

interface Case extends Host {
  readonly hosts: readonly string[]
  readonly from?: readonly string[]
  readonly project?: readonly string[]
}

/** Tool and promise -> a host, and what is found on it. */
const CASES: Readonly<Record<string, Case>> = {
  '@npm: the registry and the scopes of the user': {
    files: {
      '/home/u/.npmrc':
        '; mine\nregistry = "https://me:hunter2@npm.corp:8443/api/"\n@a:registry=http://a.corp/\n//npm.corp/:_authToken=hunter2\n',
    },
    hosts: ['a.corp:80', 'npm.corp:8443'],
    from: ['/home/u/.npmrc'],
  },
  '@npm: a variable before the file, and a variable in the file': {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: as npm has it
    files: { '/home/u/.npmrc': 'registry=https://npm.corp/\n@a:registry=https://${REG}/' },
    variables: { npm_config_registry: 'http://env.corp:81/', REG: 'reg.corp' },
    hosts: ['env.corp:81', 'reg.corp:443'],
    from: ['variable npm_config_registry', '/home/u/.npmrc'],
  },
  '@npm: what is next to the program': {
    files: { '/opt/node/etc/npmrc': 'registry=https://all.corp/' },
    programs: { npm: '/opt/node/lib/node_modules/npm/bin/npm-cli.js' },
    hosts: ['all.corp:443'],
  },
  '@npm: what npm has by itself, where only a scope is set up': {
    files: { '/home/u/.npmrc': '@a:registry=https://a.corp/' },
    answers: { npm: 'https://npm.example/\n' },
    hosts: ['a.corp:443', 'npm.example:443'],
    from: ['npm config get registry', '/home/u/.npmrc'],
  },
  '@npm: nothing that the project says': {
    files: {
      '/home/u/.npmrc': 'registry=https://npm.corp/',
      '/code/project/.npmrc': 'registry=https://evil.example/\n@b:registry=https://b.example/',
    },
    hosts: ['npm.corp:443'],
    project: ['evil.example:443', 'b.example:443'],
  },
  '@pip: index and further indexes, over several lines': {
    files: {
      '/home/u/.config/pip/pip.conf': '[global]\nindex-url: https://u:hunter2@pip.corp/simple\n',
      '/etc/pip.conf': '[install]\nextra_index_url =\n    http://one.corp/simple\n    http://two.corp:8080/simple\n',
    },
    hosts: ['one.corp:80', 'pip.corp:443', 'two.corp:8080'],
  },
  '@pip: the variables before the files': {
    files: { '/home/u/.pip/pip.conf': '[global]\nindex-url = https://pip.corp/simple\n' },
    variables: { PIP_INDEX_URL: 'https://u:hunter2@env.corp/', PIP_EXTRA_INDEX_URL: 'http://a.corp http://b.corp' },
    hosts: ['a.corp:80', 'b.corp:80', 'env.corp:443'],
    from: ['variable PIP_INDEX_URL', 'variable PIP_EXTRA_INDEX_URL'],
  },
  '@pip: what pip has by itself, and nothing of a virtual environment': {
    files: { '/code/project/.venv/pip.conf': '[global]\nindex-url = https://evil.example/' },
    variables: { VIRTUAL_ENV: '/code/project/.venv' },
    answers: { python3: 'https://pip.example/simple https://files.example\n' },
    hosts: ['files.example:443', 'pip.example:443'],
    project: ['evil.example:443'],
  },
  '@cargo: tables, dotted keys and inline tables': {
    files: {
      '/home/u/.cargo/config.toml':
        '[source.crates-io]\nreplace-with = "corp"\n[source.corp]\nregistry = "sparse+https://cargo.corp/index/" # ours\n' +
        '[registries]\na = { index = "https://a.corp:444/git" }\nb.index = \'ssh://git@b.corp/x.git\'\n',
      '/code/.cargo/config.toml': '[source.corp]\nregistry = "https://evil.example/"',
    },
    hosts: ['a.corp:444', 'b.corp:22', 'cargo.corp:443'],
    project: ['evil.example:443'],
  },
  '@go: the proxies of a list': {
    files: { '/home/u/.config/go/env': 'GOFLAGS=-x\nGOPROXY=https://one.corp,https://two.corp:8443|direct\n' },
    answers: { go: 'https://go.example,direct' },
    hosts: ['one.corp:443', 'two.corp:8443'],
  },
  '@go: no host where modules come from everywhere': { variables: { GOPROXY: 'direct' }, hosts: [] },
  '@go: what go has by itself': {
    answers: { go: 'https://go.example,direct\n' },
    hosts: ['go.example:443'],
  },
  '@apt: both forms of a list, without what is switched off': {
    files: {
      '/etc/apt/sources.list':
        '# deb http://no.example x\ndeb [arch=amd64 signed-by=/k] http://deb.corp/debian x main\ndeb cdrom:[x]/ x\n',
      '/etc/apt/sources.list.d/a.sources':
        '# mirrors\nTypes: deb\nURIs: https://one.corp/a\n  https://two.corp:444/b\nSuites: x\n\nTypes: deb\nEnabled: no\nURIs: https://off.corp\n',
      '/etc/apt/sources.list.d/b.list': 'deb mirror+file:/etc/apt/mirrors x main\n',
      '/etc/apt/mirrors': '# list\nhttp://m.corp/debian priority:1\n',
      '/etc/apt/sources.list.d/c.save': 'deb http://save.corp x\n',
    },
    hosts: ['deb.corp:80', 'm.corp:80', 'one.corp:443', 'two.corp:444'],
  },
  '@git: remotes of all kinds, rewritten': {
    files: {
      '/code/project/.git/config':
        '[core]\n\tbare = false\n[remote "origin"]\n\turl = git@code.corp:org/x.git\n[remote "b"]\n\turl = gh:org/x # short\n\tpushurl = ssh://git@push.corp:2222/x\n[remote "c"]\n\turl = ../local\n[remote "d"]\n\turl = https://u:hunter2@web.corp/x\n',
      '/home/u/.gitconfig': '[include]\n\tpath = .gitconfig-work\n[url "https://wide.example/"]\n\tinsteadOf = gh\n',
      '/home/u/.gitconfig-work': '[url "https://short.corp:8443/"]\n\tinsteadOf = "gh:"\n',
    },
    hosts: ['code.corp:22', 'push.corp:2222', 'short.corp:8443', 'web.corp:443'],
    from: ['/code/project/.git/config'],
  },
  '@git: a worktree': {
    files: {
      '/code/project/.git': 'gitdir: /code/main/.git/worktrees/project\n',
      '/code/main/.git/worktrees/project/commondir': '../..\n',
      '/code/main/.git/config': '[remote "origin"]\nurl = git://old.corp/x\n',
    },
    hosts: ['old.corp:9418'],
  },
  '@git: no repository of somebody else, nor what a checked-out file would rewrite': {
    files: {
      '/code/project/.git/config': '[include]\npath = ../evil\n[remote "origin"]\nurl = https://evil.example/x\n',
      '/code/project/evil': '[url "https://evil.example/"]\ninsteadOf = https://',
    },
    foreign: ['/code/project/.git'],
    hosts: [],
  },
  '@git: no file that the repository includes': {
    files: {
      '/code/project/.git/config': '[include]\npath = ../shared\n[remote "origin"]\nurl = https://code.corp/x\n',
      '/code/project/shared':
        '[remote "evil"]\nurl = https://evil.example/x\n[url "https://evil.example/"]\ninsteadOf = https://',
    },
    hosts: ['code.corp:443'],
  },
}

test.each(Object.entries(CASES))('%s', async (title, { hosts, from, project = [], ...host }) => {
  const found = await hostsOf(title.split(':')[0] as ToolName, lookAt(host))
  expect(found.hosts).toEqual(hosts)
  if (from !== undefined) expect(found.from).toEqual(from)
  expect(found.passedOver.map((passed) => passed.host)).toEqual(project)
  expect(JSON.stringify(found)).not.toContain('hunter2')
})

test.each(TOOL_NAMES)('%s: nothing that is set up is no host', async (name) => {
  expect(await hostsOf(name, lookAt({}))).toEqual({ name, hosts: [], from: [], passedOver: [] })
})

describe('an address', () => {
  test.each([
    ['https://a.corp', 'a.corp:443'],
    ['HTTPS://A.Corp./x', 'a.corp:443'],
    ['http://a.corp:0080/', 'a.corp:80'],
    ['https://a.corp:80/', 'a.corp:80'],
    ['https://u:p@ss@a.corp/', 'a.corp:443'],
    ['https://a.corp?x=https://b.corp', 'a.corp:443'],
    ['https://evil.example\\@a.corp/', undefined],
    ['http://[2001:db8::1]:8080/', '[2001:db8::1]:8080'],
    ['http://10.1.2.3:4873/', '10.1.2.3:4873'],
    ['https://bücher.example/', 'xn--bcher-kva.example:443'],
    ['https://*.example/', undefined],
    ['https://10.0.0.0%2f8/', undefined],
    ['https:///x', undefined],
    ['file:///srv/npm', undefined],
    ['ftp://a.corp/', undefined],
    ['a.corp', undefined],
    ['git+ssh://git@a.corp/x', 'a.corp:22'],
    ['https://a.corp:99999/', undefined],
    ['direct', undefined],
  ])('%s: %s', (url, rule) => expect(ruleOfUrl(url)).toBe(rule))

  test.each([
    ['git@a.corp:x/y.git', 'a.corp:22'],
    ['a.corp:x', 'a.corp:22'],
    ['[2001:db8::1]:x', '[2001:db8::1]:22'],
    ['./a:b', undefined],
    ['/srv/a.git', undefined],
    ['https://a.corp/x', undefined],
    ['a*b:x', undefined],
  ])('%s of git: %s', (url, rule) => expect(ruleOfScp(url)).toBe(rule))
})

test('a registry on the loopback of the host is passed over', async () => {
  const files = { '/home/u/.npmrc': 'registry=http://localhost:4873/\n@a:registry=http://127.0.0.1:4874/' }
  const { hosts, passedOver } = await hostsOf('@npm', lookAt({ files }))
  expect({ hosts, local: passedOver.map(({ host, why }) => [host, why]) }).toEqual({
    hosts: [],
    local: [
      ['localhost:4873', 'local'],
      ['127.0.0.1:4874', 'local'],
    ],
  })
})

test.each([
  [{ allow: [], deny: [] }, 1],
  [{ allow: ['*.example'], deny: [] }, 0],
  [{ allow: [], deny: ['evil.example'] }, 0],
  [{ allow: ['evil.example:80'], deny: [] }, 1],
])('what a project names is spoken of until somebody has decided: %j', async (network, count) => {
  const files = { '/code/project/.npmrc': 'registry=https://evil.example/' }
  expect(undecided(await hostsOf('@npm', lookAt({ files })), network)).toHaveLength(count)
})
