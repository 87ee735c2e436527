/** A client of `llm-do mcp`, by the SDK, on stdin and stdout or by HTTP. */
import { chownSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js'
import { execa } from 'execa'
import { onTestFinished } from 'vitest'
import type { ArgumentsOf, ResultOf, ToolName } from '../../src/mcp/tools.ts'
import type { Place } from '../cow/place.ts'
import { cliWords } from '../support/cli.ts'
import { TIED } from '../support/processes.ts'
import { currentUser, uidOf } from '../support/users.ts'

/** A file of the project, the user's. */
export function put({ project, user }: Place, name: string, text: string): void {
  const file = join(project, name)
  writeFileSync(file, text)
  chownSync(file, uidOf(user), uidOf(user))
}

const withPath = (env: Place['env']) => ({ ...env, PATH: process.env['PATH'] ?? '', TMPDIR: tmpdir() })

export interface Connected {
  readonly client: Client
  readonly call: <Name extends ToolName>(
    name: Name,
    values: Partial<ArgumentsOf<Name>>,
    options?: Parameters<Client['callTool']>[2],
  ) => Promise<Answer<ResultOf<Name>>>
}

export interface Answer<Data> {
  readonly data: Data
  /** All blocks. */
  readonly texts: readonly string[]
  readonly isError: boolean
}

async function connect(transport: Transport): Promise<Connected> {
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(transport)
  onTestFinished(() => client.close())
  // From here on the client holds each result to its schema.
  await client.listTools()
  return {
    client,
    call: async (name, values, options) => {
      const result = (await client.callTool({ name, arguments: values }, undefined, options)) as CallToolResult
      const texts = result.content.map((block) => (block.type === 'text' ? block.text : ''))
      return { data: result.structuredContent as never, texts, isError: result.isError === true }
    },
  }
}

export interface OverStdio extends Connected {
  readonly pid: number
  readonly stderr: () => string
}

export async function overStdio({ user, project, env }: Place, ...words: readonly string[]): Promise<OverStdio> {
  const [command = '', ...args] = cliWords(['mcp', ...words], { as: user, program: 'llm-do' })
  const transport = new StdioClientTransport({ command, args, cwd: project, env: withPath(env), stderr: 'pipe' })
  const said: string[] = []
  transport.stderr?.on('data', (chunk: Buffer) => said.push(chunk.toString()))
  const connected = await connect(transport)
  return { ...connected, pid: transport.pid ?? 0, stderr: () => said.join('') }
}

export interface HttpServer {
  readonly url: URL
  readonly token: string
  /** Ends it by SIGTERM. */
  readonly stop: () => Promise<number | undefined>
  readonly connect: () => Promise<Connected & { readonly transport: StreamableHTTPClientTransport }>
}

export async function overHttp({ user, project, env }: Place, ...words: readonly string[]): Promise<HttpServer> {
  const [command = '', ...args] = cliWords(['mcp', '--http', '0', ...words], {
    as: user,
    program: 'llm-do',
    through: user === currentUser() ? TIED : [],
  })
  const server = execa(command, args, {
    cwd: project,
    env: withPath(env),
    extendEnv: false,
    reject: false,
    stdin: 'ignore',
  })
  onTestFinished(async () => {
    server.kill('SIGTERM')
    await server
  })
  // Output comes immediately; without a token there is one line less.
  const lines = await new Promise<string>((resolve) => {
    const isWhole = words.includes('--token-file') ? /serving \S+\n/ : /token: \S+\n/
    const said: string[] = []
    server.stderr.on('data', (chunk: Buffer) => {
      said.push(chunk.toString())
      if (isWhole.test(said.join(''))) resolve(said.join(''))
    })
    server.once('exit', () => resolve(said.join('')))
  })
  const url = new URL(/http:\S+/.exec(lines)?.[0] ?? '')
  const file = words[words.indexOf('--token-file') + 1] ?? ''
  const token = /token: (\S+)/.exec(lines)?.[1] ?? (await readFile(file, 'utf8')).trim()
  return {
    url,
    token,
    stop: async () => {
      server.kill('SIGTERM')
      return (await server).exitCode
    },
    connect: async () => {
      const transport = new StreamableHTTPClientTransport(url, {
        requestInit: { headers: { authorization: `Bearer ${token}` } },
      })
      return { ...(await connect(transport as Transport)), transport }
    },
  }
}
