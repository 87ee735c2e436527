import { describe, expect, test } from 'vitest'
import { judgeNeeds } from './needs.ts'

const docker = { need: 'docker', reason: 'no dockerd on PATH' }
const git = { need: 'git', reason: 'no git on PATH' }

describe('a test that needs something of the machine', () => {
  test.each([
    { title: 'runs where everything is there', unmet: [], required: ['docker'], kind: 'run', reason: '' },
    {
      title: 'is skipped with the reason',
      unmet: [docker],
      required: [],
      kind: 'skip',
      reason: 'docker: no dockerd on PATH',
    },
    {
      title: 'is skipped when another need is required',
      unmet: [git],
      required: ['docker'],
      kind: 'skip',
      reason: 'git: no git on PATH',
    },
    {
      title: 'fails where one of its missing needs is required',
      unmet: [git, docker],
      required: ['docker'],
      kind: 'fail',
      reason: 'git: no git on PATH; docker: no dockerd on PATH',
    },
  ])('$title', ({ unmet, required, kind, reason }) => {
    expect(judgeNeeds(unmet, required)).toEqual({ kind, reason })
  })
})
