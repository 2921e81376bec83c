/** What the examples that need a server of somebody else's do where none answers. */

const required = process.env.CI === 'true' || process.env.REQUIRE_ENGINES === '1'

/**
 * What `connect` resolves with. Where it fails, the example says in one line what was not run, and
 * ends well; with `CI=true` or `REQUIRE_ENGINES=1` it fails.
 */
export async function reached<T>(server: string, connect: () => Promise<T>): Promise<T> {
  try {
    return await connect()
  } catch (error) {
    if (required) throw error
    console.log(`not run, since ${server} does not answer: ${error}`)
    process.exit()
  }
}
