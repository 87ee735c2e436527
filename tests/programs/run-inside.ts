/** Runs one command by the library and prints the result, or the refusal, as JSON: for runs inside containers. */
import { SandboxError } from '../../src/error.ts'
import { exec } from '../../src/run/exec.ts'

const report = await exec({ command: process.argv.slice(2), mode: 'capture', stdin: 'ignore' }).catch(
  (error: unknown) => {
    if (!(error instanceof SandboxError)) throw error
    const { code, message, hint } = error
    return { error: { code, message, hint } }
  },
)
process.stdout.write(`${JSON.stringify(report)}\n`)
