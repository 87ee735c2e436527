/** The texts that `llm-do init` writes. Pure. */

export interface FirstFile {
  /** Relative to the project. */
  readonly file: string
  readonly text: string
}

/** @param project name of the project's directory */
export function firstFiles(project: string): readonly FirstFile[] {
  const name =
    project
      .replace(/[^A-Za-z0-9_-]/g, '-')
      .replace(/^-+/, '')
      .slice(0, 64) || 'project'
  return [
    { file: 'workshop.yaml', text: workshopText(name) },
    { file: 'workers/helper.worker', text: WORKER },
  ]
}

function workshopText(name: string): string {
  return `# Where this project's workers run. A worker can ask for less than this, never for more.
#   llm-do exec --worker helper --workshop workshop.yaml -- ls
workshop:
  name: ${name}
  workers: [helper]           # who may work here; take the line away and any worker may
  sandbox:
    zones:
      # Relative to this file. ro: can be read. rw: can be changed.
      - { name: workspace, hostPath: ., mode: ro }
      # - { name: output, hostPath: ./output, mode: rw, create: true }
      # - { name: scratch, mode: tmpfs, size: 50m }
    network: none             # more than the operator grants is refused: llm-do exec --allow-host example.com ...
    resources: { memory: 512m, cpus: 2, timeout: 30s }
  # allow_worker_zones: true  # workers may add zones inside this project by themselves
`
}

const WORKER = `---
name: helper
description: Looks around in this project and answers questions about it.
toolsets:
  shell:
    # The first rule that matches counts; words are compared one by one. Without a default the rest is blocked.
    rules:
      - { pattern: ls, approval: preApproved }
      - { pattern: cat, approval: preApproved }
      - { pattern: grep, approval: preApproved }
      - { pattern: git log, approval: preApproved }
      - { pattern: git diff, approval: preApproved }
    default: { approval: ask }
sandbox:
  zones:
    - { name: workspace, mode: ro }   # asked for by name; the workshop says which directory that is
---

You help with this project. Look before you answer, and say which files you looked at.
`
