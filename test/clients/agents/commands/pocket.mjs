/** An MCP server over stdio with one tool. */
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { z } from 'zod'

const server = new McpServer({ name: 'pocket', version: '1.0.0' })
const tool = { description: 'Tells the weather.', inputSchema: { city: z.string() } }
server.registerTool('weather', tool, async ({ city }) => ({
  content: [{ type: 'text', text: `rain in ${city}` }],
}))
await server.connect(new StdioServerTransport())
