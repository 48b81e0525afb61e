"""Voice activity projection: who will hold the floor in the next two seconds, from the sound of both speakers."""
