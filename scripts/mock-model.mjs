#!/usr/bin/env node
/**
 * A model with given answers: `mock-model.mjs PORT COMMAND...` answers each request with a call of the client's shell tool, one
 * COMMAND after the other, and then with "Done.". So a coding agent makes real tool calls without a key and without a network. It speaks
 * the chat completions and responses of OpenAI, the messages of Anthropic and the contents of Gemini, always as a stream of events.
 * How far a conversation is, its own history says: the results of tools in it are counted, and nothing is kept here.
 */
import { createServer } from 'node:http'

const [port, ...commands] = process.argv.slice(2)

const SHELL_TOOL =
  /^(?:bash|shell|shell_command|exec_command|run_shell_command|execute_command|local_shell|run_terminal_cmd|run_commands|Bash)$/

/** Each API: how its requests name tools and results, and which events an answer is. */
const apis = [
  {
    path: /\/chat\/completions$/,
    tools: ({ tools = [] }) => tools.map(({ function: { name, parameters } }) => ({ name, schema: parameters })),
    results: ({ messages }) => messages.filter(({ role }) => role === 'tool').length,
    call: (id, { name, input }) =>
      completion(
        { tool_calls: [{ index: 0, id, type: 'function', function: { name, arguments: JSON.stringify(input) } }] },
        'tool_calls',
      ),
    say: (text) => completion({ content: text }, 'stop'),
    whole: (text) => ({
      id: 'c',
      object: 'chat.completion',
      choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    }),
  },
  {
    path: /\/responses$/,
    tools: ({ tools = [] }) => tools.map(({ name, type, parameters }) => ({ name: name ?? type, schema: parameters })),
    results: ({ input }) => input.filter(({ type }) => /call_output$/.test(type)).length,
    call: (id, { name, input }) =>
      response({
        type: 'function_call',
        id: `f${id}`,
        call_id: id,
        name,
        arguments: JSON.stringify(input),
        status: 'completed',
      }),
    say: (text) =>
      response({
        type: 'message',
        id: 'm',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text, annotations: [] }],
      }),
  },
  {
    path: /\/messages$/,
    tools: ({ tools = [] }) => tools.map(({ name, input_schema }) => ({ name, schema: input_schema })),
    results: ({ messages }) =>
      messages.flatMap(({ content }) => content).filter(({ type }) => type === 'tool_result').length,
    call: (id, { name, input }) =>
      message(
        { type: 'tool_use', id, name, input: {} },
        { type: 'input_json_delta', partial_json: JSON.stringify(input) },
        'tool_use',
      ),
    say: (text) => message({ type: 'text', text: '' }, { type: 'text_delta', text }, 'end_turn'),
    whole: (text) => ({ ...EMPTY_MESSAGE, content: [{ type: 'text', text }], stop_reason: 'end_turn' }),
  },
  {
    path: /:(?:streamG|g)enerateContent$/,
    tools: ({ tools = [] }) =>
      tools
        .flatMap(({ functionDeclarations = [] }) => functionDeclarations)
        .map(({ name, parameters, parametersJsonSchema }) => ({ name, schema: parametersJsonSchema ?? parameters })),
    results: ({ contents }) =>
      contents.flatMap(({ parts }) => parts).filter(({ functionResponse }) => functionResponse).length,
    call: (id, { name, input }) => [[undefined, candidate({ functionCall: { id, name, args: input } })]],
    say: (text) => [[undefined, candidate({ text })]],
    whole: (text) => candidate({ text }),
  },
]

const completion = (delta, finish) => [
  [
    undefined,
    {
      id: 'c',
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta: { role: 'assistant', ...delta }, finish_reason: null }],
    },
  ],
  [
    undefined,
    {
      id: 'c',
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta: {}, finish_reason: finish }],
      usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
    },
  ],
  [undefined, '[DONE]'],
]

const response = (item) =>
  [
    { type: 'response.created', response: { id: 'r' } },
    { type: 'response.output_item.added', output_index: 0, item },
    { type: 'response.output_item.done', output_index: 0, item },
    {
      type: 'response.completed',
      response: { id: 'r', output: [item], usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 } },
    },
  ].map((event) => [event.type, event])

const EMPTY_MESSAGE = {
  id: 'm',
  type: 'message',
  role: 'assistant',
  model: 'mock',
  content: [],
  stop_reason: null,
  usage: { input_tokens: 1, output_tokens: 1 },
}

const message = (block, delta, reason) =>
  [
    { type: 'message_start', message: EMPTY_MESSAGE },
    { type: 'content_block_start', index: 0, content_block: block },
    { type: 'content_block_delta', index: 0, delta },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: reason }, usage: { output_tokens: 1 } },
    { type: 'message_stop' },
  ].map((event) => [event.type, event])

const candidate = (part) => ({
  candidates: [{ index: 0, content: { role: 'model', parts: [part] }, finishReason: 'STOP' }],
  usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
})

/** The shell tool's required words: whatever takes the command gets it, as a list where a list is wanted; a reason gets a text. */
const inputFor = ({ properties = {}, required = [] }, command) => {
  const taker = ['command', 'cmd', 'commands'].find((name) => name in properties) ?? 'command'
  const isList = /array/i.test(properties[taker]?.type ?? '')
  const list = taker === 'commands' ? [command] : ['bash', '-lc', command]
  const rest = required
    .filter((name) => name !== taker)
    .map((name) => [name, /bool/i.test(properties[name]?.type) ? false : 'As told'])
  return { ...Object.fromEntries(rest), [taker]: isList ? list : command }
}

const answerTo = (api, body) => {
  const tool = api.tools(body).find(({ name }) => SHELL_TOOL.test(name ?? ''))
  const done = api.results(body)
  if (tool === undefined || done >= commands.length) return api.say(tool === undefined ? 'A task' : 'Done.')
  return api.call(`call_${done}`, { name: tool.name, input: inputFor(tool.schema ?? {}, commands[done]) })
}

const bodyOf = async (request) => {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  return JSON.parse(Buffer.concat(chunks).toString() || '{}')
}

createServer(async (request, reply) => {
  const { pathname } = new URL(request.url, 'http://mock')
  const api = apis.find(({ path }) => path.test(pathname))
  if (process.env.MOCK_LOG) console.error(request.method, request.url)
  if (request.method !== 'POST' || api === undefined)
    return reply
      .writeHead(/models$/.test(pathname) ? 200 : 404, { 'content-type': 'application/json' })
      .end('{"object":"list","data":[{"id":"mock","object":"model"}]}')
  const body = await bodyOf(request)
  const isStream = body.stream === true || pathname.includes(':stream')
  if (!isStream && api.whole)
    return reply.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(api.whole('A task')))
  reply.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const [event, data] of answerTo(api, body))
    reply.write(
      `${event ? `event: ${event}\n` : ''}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`,
    )
  return reply.end()
}).listen(Number(port), '127.0.0.1')
