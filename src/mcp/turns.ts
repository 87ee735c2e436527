/** At most so many things at once; the others wait in line. Pure. */
export class Turns {
  private free: number
  private readonly waiting = new Set<() => void>()

  constructor(most: number) {
    this.free = most
  }

  /** @throws the reason of the signal where it is aborted before its turn has come */
  async take<T>(signal: AbortSignal, use: () => Promise<T>): Promise<T> {
    await this.turn(signal)
    try {
      return await use()
    } finally {
      this.release()
    }
  }

  private async turn(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    if (this.free > 0) {
      this.free -= 1
      return
    }
    await new Promise<void>((resolve, reject) => {
      const begin = (): void => {
        signal.removeEventListener('abort', leave)
        resolve()
      }
      const leave = (): void => {
        this.waiting.delete(begin)
        reject(signal.reason)
      }
      this.waiting.add(begin)
      signal.addEventListener('abort', leave, { once: true })
    })
  }

  /** The next in line takes over the place that is free now. */
  private release(): void {
    const [next] = this.waiting
    if (next === undefined) {
      this.free += 1
      return
    }
    this.waiting.delete(next)
    next()
  }
}
