/** A session behind the SDK's protocol: what a client lists, and what its calls lead to. Bad arguments are errors of the protocol. Pure. */
import { packageVersion } from '../core.ts'
import type { Runner } from './runner.ts'
import { CallToolRequestSchema, ErrorCode, ListToolsRequestSchema, McpError, Server } from './sdk.ts'
import type { Session } from './session.ts'
import { isToolName, listTools, readArguments, toolNames } from './tools.ts'

const INSTRUCTIONS = `Commands run in a sandbox. Its policy was fixed by the person who started this server, and nothing in a call can
widen it. Hints and fixes in answers name options of \`llm-do mcp\`: pass them on to that person, do not try them.`

const OF_COPY_ON_WRITE = `What commands change waits beside the host's files: later commands see it, the host does not until \`apply\`.`

export function serverFor(session: Session, { isCopyOnWrite, plan }: Pick<Runner, 'isCopyOnWrite' | 'plan'>): Server {
  const server = new Server(
    { name: 'llm-do', version: packageVersion() },
    {
      capabilities: { tools: {} },
      instructions: [INSTRUCTIONS, ...(isCopyOnWrite ? [OF_COPY_ON_WRITE] : [])].join('\n'),
    },
  )
  const tools = listTools({ isCopyOnWrite, isOpenWorld: plan.network.mode !== 'none' })
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools }))
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal, sendNotification }) => {
    const { name, arguments: given, _meta } = params
    if (!isToolName(name) || !toolNames(isCopyOnWrite).includes(name))
      throw new McpError(ErrorCode.InvalidParams, `no tool ${JSON.stringify(name)}`)
    const read = readArguments(name, given)
    if ('problem' in read) throw new McpError(ErrorCode.InvalidParams, read.problem)
    const progressToken = _meta?.progressToken
    const report =
      progressToken === undefined
        ? undefined
        : (progress: object) => {
            // Whoever does not listen any more misses nothing but this.
            sendNotification({
              method: 'notifications/progress',
              params: { ...progress, progressToken } as never,
            }).catch(() => undefined)
          }
    return await session.call(name, read.values, { signal, report })
  })
  return server
}
