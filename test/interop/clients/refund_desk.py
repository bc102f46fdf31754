import asyncio
import os

from agents import Agent, Runner
from agents.mcp import MCPServerStreamableHttp


async def main() -> None:
    headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    params = {"url": os.environ["WRIT_MCP_URL"], "headers": headers}
    async with MCPServerStreamableHttp(params=params) as writ:
        agent = Agent(name="Refund desk", model=os.environ["MODEL"], mcp_servers=[writ])
        result = await Runner.run(agent, "Refund 1,200 USD to user 42.", max_turns=30)
        print("ANSWER", result.final_output)


asyncio.run(main())
