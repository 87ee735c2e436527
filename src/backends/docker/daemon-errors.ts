/** Maps messages of the client or daemon, when it would not create or start a container, to our errors. Rows of a table. */
import { type ErrorCode, SandboxError } from '../run-kit.ts'

interface Row {
  readonly matches: RegExp
  readonly code: ErrorCode
  readonly what: (words: Words) => string
  readonly hint: (words: Words) => string
}

interface Words {
  readonly program: string
  readonly image: string
  /** The part of the text that says what is wrong. */
  readonly detail: string
}

const ROWS: readonly Row[] = [
  {
    matches: /No such image|image not known|did not resolve to an alias|unable to find image|manifest unknown/i,
    code: 'SETUP_FAILED',
    what: ({ image }) => `image ${image} is not on this machine, and images are never fetched during a run`,
    hint: ({ program, image }) => `${program} pull ${image}   (all default images: llm-do images --pull)`,
  },
  {
    matches: /invalid reference format|repository name must be lowercase/i,
    code: 'POLICY_INVALID',
    what: ({ image }) => `image: expected NAME[:TAG], got "${image}"`,
    hint: () => '--image debian:bookworm-slim',
  },
  {
    matches: /permission denied while trying to connect|dial unix [^:]*: connect: permission denied/i,
    code: 'NO_BACKEND',
    what: () => 'this user may not use the socket of the daemon',
    hint: () =>
      'use rootless Docker (dockerd-rootless-setuptool.sh install); membership in the docker group is the same as root',
  },
  {
    matches:
      /Cannot connect to the Docker daemon|Is the docker daemon running|connection refused|failed to connect to the docker API|error during connect/i,
    code: 'NO_BACKEND',
    what: () => 'the daemon does not answer',
    hint: () => 'sudo systemctl start docker (or start Docker Desktop), or point DOCKER_HOST at a daemon that runs',
  },
  {
    matches: /Mounts denied|is not shared from|not shared from the host|file sharing/i,
    code: 'ZONE_INVALID',
    what: ({ detail }) => `a zone is on a path that the daemon's machine does not see: ${detail}`,
    hint: () => 'add its directory in Docker Desktop: Settings, Resources, File sharing',
  },
  {
    matches:
      /bind source path does not exist|statfs .*no such file or directory|invalid mount config|invalid mount path|must be an absolute path|incorrect mount format|must be a key=value pair|unexpected (option|key)|invalid mount option/i,
    code: 'ZONE_INVALID',
    what: ({ detail }) => `a zone cannot be mounted: ${detail}`,
    hint: () => 'check that the source exists where the daemon runs, and that its name has no unusual characters',
  },
  {
    matches: /container-init binary not found|docker-init.*(not found|no such file)/i,
    code: 'SETUP_FAILED',
    what: ({ program }) => `${program} has no init program for containers`,
    hint: () => 'sudo apt-get install catatonit   (or set init_path in containers.conf to tini)',
  },
  {
    matches: /error setting rlimit|operation not permitted: OCI permission denied/i,
    code: 'SETUP_FAILED',
    what: ({ detail }) => `a limit is above what the daemon itself may have: ${detail}`,
    hint: () => 'lower the limit, or start the daemon with higher ones (LimitNOFILE= and LimitNPROC= of its service)',
  },
]

/** Prefixes of a message that only name the program that prints it. */
const PREFIX =
  /^(Error response from daemon: |Error: |docker: |unable to start container "?\S+"?: |failed to create (shim )?task(?: for container)?: |OCI runtime create failed: |runc: |runc create failed: |crun: )+/

/** @param text stderr of the client, or State.Error of the container */
export function refusalOf(text: string, { program, image }: Omit<Words, 'detail'>): SandboxError {
  const lines = text.split('\n').map((line) => line.trim())
  const line = lines.find((one) => PREFIX.test(one)) ?? lines.find((one) => one !== '') ?? 'it said nothing'
  const words = { program, image, detail: line.replace(PREFIX, '') }
  const row = ROWS.find(({ matches }) => matches.test(text))
  if (row === undefined) {
    return new SandboxError('SETUP_FAILED', `${program}: ${words.detail}`, {
      hint: `llm-do doctor, or ask the daemon: ${program} info`,
    })
  }
  return new SandboxError(row.code, `${program}: ${row.what(words)}`, { hint: row.hint(words) })
}
