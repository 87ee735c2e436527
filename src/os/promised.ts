/** A promise that is settled by other code than made it: Promise.withResolvers() of node 22. Pure. */
export interface Promised<T> {
  readonly promise: Promise<T>
  /** Only the first call counts. */
  readonly resolve: (value: T) => void
}

export function promised<T>(): Promised<T> {
  let keep: (value: T) => void = () => undefined
  const promise = new Promise<T>((resolve) => {
    keep = resolve
  })
  return { promise, resolve: keep }
}
