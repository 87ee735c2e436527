/** The library's promises by the ways that `make test` leaves out. */
import { BUSYBOX_IMAGE, oncePerFile, startDocker } from '../support/docker.ts'
import { describeWith } from '../support/needs.ts'
import { promises, sandboxPromises } from './promises.ts'
import { alone, inSandbox } from './ways.ts'

describeWith(['bwrap', 'userns'], 'by a sandbox that keeps nothing ready:', () => sandboxPromises(inSandbox(0)))

describeWith(['bwrap', 'userns'], 'by a process of the host:', () =>
  promises(alone({ policy: { backend: 'process' }, env: { ...process.env, LLM_DO_ALLOW_UNSANDBOXED: '1' } })),
)

describeWith('docker', 'by a container:', () => {
  const docker = oncePerFile(startDocker)
  sandboxPromises(async (use, policy) => {
    const { env } = await docker()
    await alone({ env: { ...process.env, ...env }, policy: { backend: 'docker', image: BUSYBOX_IMAGE } })(use, policy)
  })
})
