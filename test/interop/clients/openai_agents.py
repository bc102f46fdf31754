import os

from agents import Agent, Runner, function_tool


@function_tool
def look(ticket: str) -> str:
    """Reads the ticket."""
    return "The ticket is open."


agent = Agent(name="Support", model=os.environ["MODEL"], tools=[look])
Runner.run_sync(agent, "Answer ticket 4711.", max_turns=20)
