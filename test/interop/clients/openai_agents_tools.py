import asyncio
import os

from agents import Agent, Runner, function_tool


@function_tool
def shell(command: str) -> str:
    """Executes a command."""
    print("EXECUTED", command)
    return "done"


async def main() -> None:
    agent = Agent(name="Coder", model=os.environ["MODEL"], tools=[shell])
    result = Runner.run_streamed(agent, "Clean up.", max_turns=20)
    async for _ in result.stream_events():
        pass
    print("ANSWER", result.final_output)


asyncio.run(main())
