/** Prints as JSON what observeCgroup finds for the inputs of its word, or its refusal. */
import { observeCgroup } from '../../src/cgroup/ladder.ts'

const observe = (paths: readonly string[]) => Object.fromEntries(paths.map((path) => [path, 'as it was']))
const inputs = JSON.parse(process.argv[2] ?? '')
const answer = await observeCgroup({ ...inputs, observe }).catch(({ code, message, hint }) => ({ code, message, hint }))
process.stdout.write(JSON.stringify(answer, (_, value) => value ?? 'unknown'))
