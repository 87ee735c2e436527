// A lane of `make test`: runs the system test files that its parent sends, one after another, and reports what each test came to.
//
// One vitest and one process for the whole lane: a module is transformed and loaded once. So a file leaves the process as it found it, which
// tests/support/surroundings.ts looks at. Message in: { file, name? }. Message out: { ready: true }, then for each file { file, tests, errors }.
import { join } from 'node:path'
import { createVitest } from 'vitest/node'
import { oneProcess } from './one-process.mjs'

// As vitest's own command does: the cache of modules asks for it.
process.env.NODE_ENV ??= 'test'

const vitest = await createVitest(
  'test',
  { watch: false, project: ['system'], reporters: [{}], cache: false, pool: oneProcess(), isolate: false },
  // The default loader writes next to the configuration, which may belong to another user.
  { cacheDir: join(process.env.TMPDIR, 'vite'), configLoader: 'runner' },
)

/** Where in the tests it was thrown. A message, which comes first in a stack, may be megabytes of one line. */
const placeIn = (stack) =>
  stack
    .split('\n')
    .filter((line) => line.length < 1_000 && /^\s+at /.test(line))
    .map((line) => /[^\s(]*tests\/[^\s)]*:\d+:\d+/.exec(line)?.[0])
    .find((place) => place !== undefined)

/** The difference is what a message loses that is cut to a line of the log. */
const textOf = ({ message, stack = '', diff = '' }) => {
  const place = placeIn(stack)
  return [message, ...(place === undefined ? [] : [`  at ${place}`]), ...(diff === '' ? [] : [diff])].join('\n')
}

const reported = (test) => {
  const { state, errors = [] } = test.result()
  return { title: test.fullName, state, errors: errors.map(textOf) }
}

async function runFile({ file, name }) {
  const found = await vitest.globTestSpecifications([file])
  const wanted = found.filter(({ moduleId }) => moduleId.endsWith(`/${file}`))
  if (wanted.length === 0) return { file, tests: [], errors: [`${file}: no such file of system tests`] }
  if (name === undefined) vitest.resetGlobalTestNamePattern()
  else vitest.setGlobalTestNamePattern(new RegExp(name))
  const { testModules: all, unhandledErrors } = await vitest.runTestSpecifications(wanted)
  // vitest counts over all runs of a process.
  const testModules = all.filter(({ moduleId }) => moduleId.endsWith(`/${file}`))
  const tests = testModules.flatMap((module) => [...module.children.allTests()].map(reported))
  // A failed hook of a suite leaves its tests skipped, and only the suite has the error.
  const suites = testModules.flatMap((module) => [module, ...module.children.allSuites()])
  const errors = [...suites.flatMap((suite) => suite.errors()), ...unhandledErrors].map(textOf)
  return { file, tests, errors }
}

process.on('message', async (request) => {
  const answer = await runFile(request).catch((error) => ({ file: request.file, tests: [], errors: [textOf(error)] }))
  process.send(answer)
})
process.on('disconnect', () => process.exit(1))
process.send({ ready: true })
